"""The metadata of volumes and of snapshots."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from api.volume import schemas
from api.volume.call import Call, operation
from common.errors import Invalid, NotFound
from conductor.messages import VolumeEdit


@dataclass(frozen=True)
class Owner:
    """What has metadata."""

    noun: str
    """``Volume``, as messages name it."""
    rule: str
    """Its name in the policy's rules."""
    find: Callable[[Call, str, str], Mapping[str, str]]
    """Return the metadata of (id) to whom a rule allows it. Raises NotFound, Forbidden."""
    edit: Callable[[Call, str, VolumeEdit], None]


class Metadata:
    """The metadata of one kind of thing."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    @operation()
    def index(self, call: Call, **of: str) -> Any:
        """List them."""
        return {"metadata": self._found(call, _id(of), "get")}

    @operation()
    def show(self, call: Call, key: str, **of: str) -> Any:
        """Show one."""
        found = self._found(call, _id(of), "get")
        self._require(found, _id(of), key)
        return {"meta": {key: found[key]}}

    @operation(body=schemas.METADATA)
    def create(self, call: Call, **of: str) -> Any:
        """Add or change some."""
        return self._set(call, _id(of), call.body["metadata"], replace=False)

    @operation(body=schemas.METADATA)
    def update_all(self, call: Call, **of: str) -> Any:
        """Replace all."""
        return self._set(call, _id(of), call.body["metadata"], replace=True)

    @operation(body=schemas.META)
    def update(self, call: Call, key: str, **of: str) -> Any:
        """Set one."""
        meta = call.body["meta"]
        if key not in meta:
            raise Invalid("Request body and URI mismatch")
        self._set(call, _id(of), meta, replace=False)
        return {"meta": meta}

    @operation()
    def delete(self, call: Call, key: str, **of: str) -> None:
        """Delete one."""
        self._require(self._found(call, _id(of), "delete"), _id(of), key)
        self._owner.edit(call, _id(of), VolumeEdit(remove_metadata=(key,)))

    def _found(self, call: Call, record_id: str, verb: str) -> Mapping[str, str]:
        rule = f"volume:{verb}_{self._owner.rule}_metadata"
        return self._owner.find(call, record_id, rule)

    def _require(self, found: Mapping[str, str], record_id: str, key: str) -> None:
        if key not in found:
            noun = self._owner.noun
            raise NotFound(f"{noun} {record_id} has no metadata with key {key}.")

    def _set(self, call: Call, record_id: str, items: Mapping[str, str], *, replace: bool) -> Any:
        self._found(call, record_id, "update")
        edit = VolumeEdit(metadata=dict(items), replace_metadata=replace)
        self._owner.edit(call, record_id, edit)
        return {"metadata": self._found(call, record_id, "get")}


def _id(of: Mapping[str, str]) -> str:
    """Return the only parameter of the path beside the key: whose metadata they are."""
    (found,) = of.values()
    return found
