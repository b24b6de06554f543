"""``If-Match: revision_number=N``: a change of one revision alone.

See neutron/api/api_common.py (``check_request_for_revision_constraint``).
"""

from __future__ import annotations

import re
from typing import cast

import falcon

from api.network.errors import BadRequest
from api.plain import Call

_PREFIX = "revision_number="
_ETAG = re.compile(r'(?:W/)?"([^"]*)"|([^\s,"]+)')
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def constrain(call: Call) -> None:
    """Make the conductor refuse the change if the revision differs. Raises BadRequest."""
    header = cast(falcon.Request, call.request).get_header("If-Match") or ""
    etags = [quoted or plain for quoted, plain in _ETAG.findall(header)]
    named = [one.removeprefix(_PREFIX) for one in etags if one.startswith(_PREFIX)]
    if len(named) > 1:
        raise _bad("Multiple revision_number etags are not supported.")
    for text in named:
        if not _NUMBER.fullmatch(text):
            raise _bad("Revision number etag must be in the format of revision_number=<int>")
        call.ctxt.if_revision = int(text)


def _bad(text: str) -> BadRequest:
    return BadRequest(f"Bad if-match request: {text}.".replace("..", "."))
