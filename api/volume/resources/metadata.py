"""The metadata of volumes and of snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from api.volume import schemas
from api.volume.call import Call, operation
from api.volume.resources.snapshots import find_snapshot, the_snapshot
from api.volume.resources.volumes import find, the_volume
from common.errors import Invalid, NotFound
from conductor.rpc.volumes.volumes import VolumeEdit
from db.reads.volumes.snapshots import Snapshot
from db.reads.volumes.volumes import Volume
from web.guard import Params, Reply, Target

#: since when metadata have an ETag, which Cinder has of volumes' alone
_TAGGED_SINCE = 15
_PRECONDITION_FAILED = 412

Owner = Volume | Snapshot


def _owner(call: Call, params: Params) -> Target:
    """Find what has the metadata, and put it in place of its ID. Raises NotFound."""
    noun, on = ("volume", the_volume) if "volume_id" in params else ("snapshot", the_snapshot)
    target = on(call, params)
    params["owner"] = params.pop(noun)
    return target


def _owner_if_named(call: Call, params: Params) -> Target:
    """Do the same if the body has the key of the path. Raises Invalid, NotFound."""
    if params["key"] not in call.body["meta"]:
        raise Invalid("Request body and URI mismatch")
    return _owner(call, params)


@dataclass(frozen=True)
class Metadata:
    """The metadata of one kind of owner."""

    noun: str
    find: Callable[[Call, str], Owner]
    edit: Callable[[Call, str, VolumeEdit], None]

    @operation("volume:get_{noun}_metadata", on=_owner)
    def index(self, call: Call, owner: Owner) -> Any:
        """List them."""
        headers = {"ETag": f'"{_etag(owner.meta)}"'} if self._tags(call) else {}
        return Reply({"metadata": owner.meta}, headers=headers)

    @operation("volume:get_{noun}_metadata", on=_owner)
    def show(self, call: Call, owner: Owner, key: str) -> Any:
        """Show one."""
        self._require(owner, key)
        return {"meta": {key: owner.meta[key]}}

    @operation("volume:update_{noun}_metadata", body=schemas.METADATA, on=_owner)
    def create(self, call: Call, owner: Owner) -> Any:
        """Add or change some."""
        return self._set(call, owner, call.body["metadata"], replace=False)

    @operation("volume:update_{noun}_metadata", body=schemas.METADATA, on=_owner)
    def update_all(self, call: Call, owner: Owner) -> Any:
        """Replace all."""
        if self._is_stale(call, owner):
            return Reply(status=_PRECONDITION_FAILED)
        return self._set(call, owner, call.body["metadata"], replace=True)

    @operation("volume:update_{noun}_metadata", body=schemas.META, on=_owner_if_named)
    def update(self, call: Call, owner: Owner, key: str) -> Any:
        """Set one."""
        if self._is_stale(call, owner):
            return Reply(status=_PRECONDITION_FAILED)
        self._set(call, owner, call.body["meta"], replace=False)
        return {"meta": call.body["meta"]}

    @operation("volume:delete_{noun}_metadata", on=_owner)
    def delete(self, call: Call, owner: Owner, key: str) -> None:
        """Delete one."""
        self._require(owner, key)
        self.edit(call, owner.id, VolumeEdit(remove_metadata=(key,)))

    def _tags(self, call: Call) -> bool:
        return self.noun == "volume" and call.version >= _TAGGED_SINCE

    def _is_stale(self, call: Call, owner: Owner) -> bool:
        """Return whether others are there than those whose ETag a change asks for."""
        text = call.if_match
        if text is None or text.strip() == "*" or not self._tags(call):
            return False
        named = {part.strip().removeprefix("W/").strip('"') for part in text.split(",")}
        return _etag(owner.meta) not in named

    def _require(self, owner: Owner, key: str) -> None:
        if key not in owner.meta:
            noun = self.noun.capitalize()
            raise NotFound(f"{noun} {owner.id} has no metadata with key {key}.")

    def _set(self, call: Call, owner: Owner, items: Mapping[str, str], *, replace: bool) -> Any:
        self.edit(call, owner.id, VolumeEdit(metadata=dict(items), replace_metadata=replace))
        return {"metadata": self.find(call, owner.id).meta}


def _etag(items: Mapping[str, str]) -> str:
    return hashlib.sha256(orjson.dumps(dict(items), option=orjson.OPT_SORT_KEYS)).hexdigest()


VOLUME_METADATA = Metadata(
    "volume", find, lambda call, key, edit: call.conductor.edit_volume(call.ctxt, key, edit)
)
SNAPSHOT_METADATA = Metadata(
    "snapshot",
    find_snapshot,
    lambda call, key, edit: call.conductor.edit_volume_snapshot(call.ctxt, key, edit),
)
