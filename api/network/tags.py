"""The tags of networks, subnets, ports and security groups (neutron/extensions/tagging.py)."""

from __future__ import annotations

from typing import Any

from api.network import values
from api.network.errors import InvalidInput
from api.network.resources import Store, of_all_projects, target_of
from api.plain import Call, operation
from common.errors import NotFound
from conductor.rpc import ConductorRpc
from conductor.rpc.networks.ports import TagChange
from web.guard import Reply
from web.policy import Enforcer


class TagStore:
    """The tags of one kind of record, as its users may see and change them."""

    def __init__(self, store: Store, policy: Enforcer, conductor: ConductorRpc) -> None:
        self._store, self._policy, self._conductor = store, policy, conductor
        self.noun = store.kind.singular

    def read(self, call: Call, record_id: str) -> list[str]:
        """Return a record's tags. Raises NotFound."""
        return list(getattr(self._store.find(call.ctxt, record_id), "tags", None) or ())

    def change(self, call: Call, record_id: str, verb: str, asked: TagChange) -> list[str]:
        """Change a record's tags; return them. Raises NotFound, Forbidden, Invalid."""
        record = self._store.find(call.ctxt, record_id)
        self._policy.check(call.ctxt, f"{verb}_{self.noun}:tags", target_of(record))
        call.ctxt.is_admin = of_all_projects(self._policy, call.ctxt)
        return self._conductor.change_tags(call.ctxt, self.noun, record.id, asked)


class Tags:
    """All tags of a record."""

    def __init__(self, tags: TagStore) -> None:
        self._tags, self.noun = tags, tags.noun

    @operation()
    def on_get(self, call: Call, record_id: str) -> Any:
        """List the tags."""
        return {"tags": self._tags.read(call, record_id)}

    @operation(asks=("update_{noun}:tags",))
    def on_put(self, call: Call, record_id: str) -> Any:
        """Set the tags."""
        asked = TagChange(_given(call.body()), replace=True)
        return {"tags": self._tags.change(call, record_id, "update", asked)}

    @operation(asks=("delete_{noun}:tags",), status=204)
    def on_delete(self, call: Call, record_id: str) -> Reply:
        """Remove all tags."""
        self._tags.change(call, record_id, "delete", TagChange(replace=True))
        return Reply()


class Tag:
    """One tag of a record."""

    def __init__(self, tags: TagStore) -> None:
        self._tags, self.noun = tags, tags.noun

    @operation(status=204)
    def on_get(self, call: Call, record_id: str, tag: str) -> Reply:
        """Answer 204 if the record has the tag, else 404."""
        if _one(tag) not in self._tags.read(call, record_id):
            raise NotFound(f"Tag {tag} could not be found.", type="TagNotFound")
        return Reply()

    @operation(asks=("update_{noun}:tags",), status=201)
    def on_put(self, call: Call, record_id: str, tag: str) -> Reply:
        """Add the tag, unless it exists already."""
        self._tags.change(call, record_id, "update", TagChange((_one(tag),)))
        return Reply()

    @operation(asks=("delete_{noun}:tags",), status=204)
    def on_delete(self, call: Call, record_id: str, tag: str) -> Reply:
        """Remove it."""
        self._tags.change(call, record_id, "delete", TagChange(remove=(_one(tag),)))
        return Reply()


def _given(body: Any) -> tuple[str, ...]:
    if not isinstance(body, dict) or "tags" not in body:
        raise InvalidInput("Invalid input for operation: Invalid tags body.")
    try:
        return values.tags(body["tags"])
    except ValueError as error:
        raise InvalidInput(f"Invalid input for operation: {error}.") from error


def _one(tag: str) -> str:
    if len(tag) > values.LONGEST_TAG or "\0" in tag:
        raise InvalidInput(
            f"Invalid input for operation: '{tag[: values.LONGEST_TAG]}' exceeds maximum length "
            f"of {values.LONGEST_TAG}."
        )
    return tag
