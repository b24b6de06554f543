"""The UUIDs of the servers that a request creates: chosen here, so that a repeated create is the
same create.

They are random, or follow from the client's ``Idempotency-Key``. The request's global ID makes no
such key: clients use one for all that they do for a request of their own, which may be several
creates.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import uuid

from api.compute.call import Call
from common import ids
from common.errors import Invalid
from conductor.rpc.servers.servers import CreateServers

#: of a key: printable ASCII, with or without the quotes of a structured field
_KEY = re.compile(r'"?([!#-~][ !#-~]{0,254})"?')


def identified(call: Call, request: CreateServers) -> CreateServers:
    """Return a create with the UUIDs of its servers. Raises Invalid for an unusable key."""
    if call.key is None:
        return dataclasses.replace(
            request, uuids=tuple(ids.new_uuid() for _ in range(request.max_count))
        )
    key = _KEY.fullmatch(call.key)
    if key is None:
        raise Invalid("The Idempotency-Key must have 1 to 255 printable ASCII characters.")
    whose = (call.project, call.ctxt.user_id or "", key[1])
    return dataclasses.replace(
        request,
        uuids=tuple(_uuid(*whose, str(number)) for number in range(request.max_count)),
        fingerprint=_digest(json.dumps(call.body, sort_keys=True), str(call.version)).hex(),
    )


def _uuid(*what: str) -> str:
    """Return a UUID that looks like a random one."""
    return str(uuid.UUID(bytes=_digest(*what)[:16], version=4))


def _digest(*what: str) -> bytes:
    return hashlib.sha256(json.dumps(what).encode()).digest()
