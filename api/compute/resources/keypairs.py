"""`/os-keypairs`: a user's public keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute import sshkeys
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.schemas import keypairs as schemas
from common import clock
from common.errors import KeyPairNotFound
from conductor.rpc.servers.keypairs import NewKeyPair
from db.reads.servers import keypairs
from db.reads.servers.keypairs import KeyPair

PATH = "os-keypairs"


def _whose(call: Call, params: dict[str, str]) -> Mapping[str, Any]:
    """Return the policy's target: the user's own key pairs, or those of `user_id` since 2.10."""
    return {"project_id": call.ctxt.project_id, "user_id": _user(call)}


def _user(call: Call) -> str:
    named_user = None
    if call.version >= 10:
        named_user = call.query.last("user_id")
        if isinstance(call.body, dict) and isinstance(call.body.get("keypair"), dict):
            named_user = call.body["keypair"].get("user_id") or named_user
    return str(named_user or call.ctxt.user_id)


class KeyPairs:
    """The key pairs of a user; administrators may name another one."""

    @operation("os-keypairs:index", query=schemas.LIST, on=_whose)
    def index(self, call: Call) -> Any:
        """List key pairs; in pages since 2.35."""
        limit, marker = call.query.page(call.max_limit) if call.version >= 35 else (None, None)
        found = call.read(keypairs.list_keypairs, _user(call), limit=limit, marker=marker)
        answer: dict[str, Any] = {
            "keypairs": [{"keypair": _brief(call, keypair)} for keypair in found]
        }
        if found and len(found) == limit:
            answer["keypairs_links"] = call.links.after(PATH, call.query, found[-1].name)
        return answer

    @operation("os-keypairs:show", query=schemas.SHOW, on=_whose)
    def show(self, call: Call, name: str) -> Any:
        """Show a key pair."""
        found = call.read(keypairs.find, _user(call), name)
        if found is None:
            raise KeyPairNotFound(f"Keypair {name} not found for user {_user(call)}")
        return {
            "keypair": _brief(call, found)
            | {
                "user_id": found.user_id,
                "created_at": clock.iso_microseconds(found.created_at),
                "deleted": False,
                "deleted_at": None,
                "updated_at": None,
                "id": found.id,
            }
        }

    @operation(
        "os-keypairs:create",
        body=schemas.CREATE,
        on=_whose,
        status={"2.1": 200, "2.2": 201},
    )
    def create(self, call: Call) -> Any:
        """Import a public key; before 2.92 without one, generate a key pair."""
        asked = call.body["keypair"]
        kind = asked.get("type", sshkeys.SSH)
        name = asked["name"].strip()
        user = _user(call)
        public_key, private_key = asked.get("public_key"), None
        if public_key is None:
            private_key, public_key = sshkeys.generate(kind, user)
        new = NewKeyPair(
            user_id=user,
            name=name,
            type=kind,
            fingerprint=sshkeys.fingerprint(kind, public_key),
            public_key=public_key,
        )
        call.conductor.create_keypair(call.ctxt, new)
        answer = {
            "name": name,
            "public_key": public_key,
            "fingerprint": new.fingerprint,
            "user_id": user,
        }
        if call.version >= 2:
            answer["type"] = kind
        if private_key is not None:
            answer["private_key"] = private_key
        return {"keypair": answer}

    @operation(
        "os-keypairs:delete",
        query=schemas.SHOW,
        on=_whose,
        status={"2.1": 202, "2.2": 204},
    )
    def delete(self, call: Call, name: str) -> None:
        """Delete a key pair; servers keep their key."""
        call.conductor.delete_keypair(call.ctxt, _user(call), name)


def _brief(call: Call, keypair: KeyPair) -> dict[str, Any]:
    view = {
        "name": keypair.name,
        "public_key": keypair.public_key,
        "fingerprint": keypair.fingerprint,
    }
    if call.version >= 2:
        view["type"] = keypair.type
    return view
