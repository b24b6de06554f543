"""The configuration of storages over the API: list, add, change, remove.

What lies on a storage outlives its configuration.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from simulator.api.storage.content import visible
from simulator.api.storage.options import OPTIONS, SECRET, Options
from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.cluster import Cluster
from simulator.state.model import TB, Storage
from simulator.state.storage_kinds import CHAIN, QCOW2

_PATH = re.compile(r"/[-/a-zA-Z0-9_.@]+")
#: types that are mounted below /mnt/pve if no path is given (their plugins' `check_config`)
_MOUNTED = frozenset({"nfs", "cifs", "cephfs"})
#: what is kept in fields of its own
_FIELDS = ("content", "nodes", "disable", "shared", "path")
_NUMBERS = frozenset({"sparse", "krbd", "saferemove", "tagged_only", "nocow", CHAIN, "mkdir"})


def _shown(cluster: Cluster, storage: Storage) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "content": ",".join(storage.content) or "none",
        "storage": storage.id,
        "type": storage.type,
        **{
            key: int(text) if key in _NUMBERS else text
            for key, text in storage.options.items()
            if key not in SECRET
        },
        "digest": _digest(cluster),
    }
    if storage.path:
        shown["path"] = storage.path
    if storage.shared:
        shown["shared"] = 1
    if storage.nodes:
        shown["nodes"] = ",".join(storage.nodes)
    if storage.disabled:
        shown["disable"] = 1
    return shown


def _digest(cluster: Cluster) -> str:
    text = repr(sorted(cluster.storages.items()))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def configurations(call: Call) -> list[dict[str, Any]]:
    """`GET /storage`."""
    wanted = call.get("type")
    return [
        _shown(call.cluster, one)
        for one in call.cluster.storages.values()
        if visible(call, one) and wanted in ("", one.type)
    ]


def configuration(call: Call) -> dict[str, Any]:
    """`GET /storage/{storage}`."""
    return _shown(call.cluster, call.cluster.storage(call.get("storage")))


def create(call: Call) -> dict[str, Any]:
    """`POST /storage`: what lay on one of this name before is there again."""
    cluster, name, kind = call.cluster, call.get("storage"), call.get("type")
    options = OPTIONS.get(kind)
    if options is None:
        raise PveError(f"storages of type '{kind}' are not simulated", 501)
    given = {key: text for key, text in call.params.items() if key not in ("storage", "type")}
    if kind in _MOUNTED:
        given.setdefault("path", f"/mnt/pve/{name}")
    if not given.get("nodes"):
        given.pop("nodes", None)
    _check(options, given)
    for key in options.required:
        if key not in given:
            raise PveError(f"missing value for required option '{key}'")
    path = given.get("path", "")
    if path and not _PATH.fullmatch(path):
        raise PveError(f"illegal path for directory storage: {path}")
    if name in cluster.storages:
        raise PveError(f"create storage failed: storage ID '{name}' already defined")
    content = _content(options, given.get("content", ""))
    if content is None:
        content = list(options.default_content)
    made = Storage(name, kind, posixpath.normpath(path) if path else "", content, False, TB)
    _apply(made, given)
    made.shared = options.shared or given.get("shared") == "1"
    _save(cluster, made)
    return {"storage": name, "type": kind}


def change(call: Call) -> dict[str, Any]:
    """`PUT /storage/{storage}`."""
    cluster = call.cluster
    given = {k: v for k, v in call.params.items() if k not in ("storage", "digest", "delete")}
    gone = [one for one in re.split(r"[,;\s\0]+", call.get("delete")) if one]
    try:
        if call.get("digest") not in ("", _digest(cluster)):
            raise PveError(
                "detected modified configuration - file changed by other user? Try again."
            )
        storage = cluster.storage(call.get("storage"))
        options = OPTIONS[storage.type]
        for key in given:
            if key in options.required or key in options.fixed:
                raise PveError(f"can't change value of fixed parameter '{key}'")
        _check(options, given)
        content = _content(options, given.get("content", ""))
        _check_gone(options, gone, given)
        _check_chain(cluster, storage, gone, given)
    except PveError as error:
        raise PveError(f"update storage failed: {error.text}") from error
    for key in gone:
        _remove(storage, options, key)
    _apply(storage, given)
    storage.content = storage.content if content is None else content
    _save(cluster, storage)
    return {"storage": storage.id, "type": storage.type}


def delete(call: Call) -> None:
    """`DELETE /storage/{storage}`: only its configuration and the grants on it go."""
    cluster, name = call.cluster, call.get("storage")
    try:
        cluster.storage(name)
    except PveError as error:
        raise PveError(f"delete storage failed: {error.text}") from error
    del cluster.storages[name]
    cluster.drop("storage", name)
    access, path = cluster.access, f"/storage/{name}"
    if any(grant.path == path for grant in access.grants):
        access.grants = [grant for grant in access.grants if grant.path != path]
        cluster.save_access()


def _check(options: Options, given: Mapping[str, str]) -> None:
    for key in given:
        if key not in options.required and key not in options.optional:
            raise PveError(f"unexpected property '{key}'")


def _check_gone(options: Options, gone: list[str], given: Mapping[str, str]) -> None:
    for key in gone:
        if key in options.required:
            raise PveError(f"unable to delete required option '{key}'")
        if key not in options.optional:
            raise PveError(f"no such option '{key}'")
        if key in options.fixed:
            raise PveError(f"unable to delete fixed option '{key}'")
        if key in given:
            raise PveError(f"cannot set and delete property '{key}' at the same time!")


def _check_chain(
    cluster: Cluster, storage: Storage, gone: list[str], given: Mapping[str, str]
) -> None:
    """Raise PveError if snapshots as volumes are to end on an LVM storage that has some."""
    ends = CHAIN in gone or given.get(CHAIN) == "0"
    if storage.options.get(CHAIN) != "1" or not ends:
        return
    volumes = cluster.volumes.all()
    if any(one.storage == storage.id and one.format == QCOW2 for one in volumes):
        raise PveError(f"{storage.id} - cannot disable '{CHAIN}' while a qcow2 image exists")


def _content(options: Options, text: str) -> list[str] | None:
    """Return the content types that a storage takes of those named; None: none are named."""
    if not text:
        return None
    named = [one for one in re.split(r"[,;\s]+", text) if one]
    found = [one for one in named if one in options.content]
    if options.empty and "none" in named and found:
        raise PveError("unable to combine 'none' with other content types")
    if not found and not (options.empty and "none" in named):
        raise PveError("storage does not support content type 'none'")
    return found


def _apply(storage: Storage, given: Mapping[str, str]) -> None:
    if "nodes" in given:
        storage.nodes = [one for one in given["nodes"].split(",") if one]
    if "disable" in given:
        storage.disabled = given["disable"] == "1"
    if "shared" in given:
        storage.shared = given["shared"] == "1"
    storage.options |= {key: text for key, text in given.items() if key not in _FIELDS}


def _remove(storage: Storage, options: Options, key: str) -> None:
    if key == "nodes":
        storage.nodes = []
    elif key == "disable":
        storage.disabled = False
    elif key == "shared":
        storage.shared = options.shared
    elif key == "content":
        storage.content = list(options.default_content)
    storage.options.pop(key, None)


def _save(cluster: Cluster, storage: Storage) -> None:
    cluster.storages[storage.id] = storage
    cluster.save("storage", storage.id, storage)
