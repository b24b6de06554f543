"""The metadata of volumes and of snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from api.volume import schemas
from api.volume.call import Call, operation
from common.errors import Invalid, NotFound
from conductor.rpc.volumes.volumes import VolumeEdit
from web.guard import Reply

#: since when metadata have an ETag
_TAGGED_SINCE = 15
_PRECONDITION_FAILED = 412


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
    tagged: bool = False
    """Whether there are ETags, as Cinder has of volumes' alone."""


class Metadata:
    """The metadata of one kind of thing."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    @operation()
    def index(self, call: Call, **of: str) -> Any:
        """List them."""
        found = self._found(call, _id(of), "get")
        headers = {"ETag": f'"{_etag(found)}"'} if self._tags(call) else {}
        return Reply({"metadata": found}, headers=headers)

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
        if self._is_stale(call, _id(of)):
            return Reply(status=_PRECONDITION_FAILED)
        return self._set(call, _id(of), call.body["metadata"], replace=True)

    @operation(body=schemas.META)
    def update(self, call: Call, key: str, **of: str) -> Any:
        """Set one."""
        if self._is_stale(call, _id(of)):
            return Reply(status=_PRECONDITION_FAILED)
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

    def _tags(self, call: Call) -> bool:
        return self._owner.tagged and call.version >= _TAGGED_SINCE

    def _is_stale(self, call: Call, record_id: str) -> bool:
        """Return whether others are there than those whose ETag a change asks for."""
        text = call.if_match
        if text is None or text.strip() == "*" or not self._tags(call):
            return False
        named = {part.strip().removeprefix("W/").strip('"') for part in text.split(",")}
        return _etag(self._found(call, record_id, "update")) not in named

    def _require(self, found: Mapping[str, str], record_id: str, key: str) -> None:
        if key not in found:
            noun = self._owner.noun
            raise NotFound(f"{noun} {record_id} has no metadata with key {key}.")

    def _set(self, call: Call, record_id: str, items: Mapping[str, str], *, replace: bool) -> Any:
        self._found(call, record_id, "update")
        edit = VolumeEdit(metadata=dict(items), replace_metadata=replace)
        self._owner.edit(call, record_id, edit)
        return {"metadata": self._found(call, record_id, "get")}


def _etag(items: Mapping[str, str]) -> str:
    return hashlib.sha256(orjson.dumps(dict(items), option=orjson.OPT_SORT_KEYS)).hexdigest()


def _id(of: Mapping[str, str]) -> str:
    """Return the only parameter of the path beside the key: whose metadata they are."""
    (found,) = of.values()
    return found
