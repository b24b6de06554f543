"""Which options storages of each type have, by ``options`` and ``plugindata`` of Proxmox VE's
``PVE/Storage/*Plugin.pm``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

FILE_CONTENT = frozenset({"images", "rootdir", "vztmpl", "iso", "backup", "snippets", "import"})
BLOCK_CONTENT = frozenset({"images", "rootdir"})
_EVERY = frozenset({"nodes", "disable", "content", "bwlimit"})
_FILES = _EVERY | frozenset(
    {
        "content-dirs",
        "prune-backups",
        "max-protected-backups",
        "format",
        "mkdir",
        "create-base-path",
        "create-subdirs",
        "preallocation",
        "snapshot-as-volume-chain",
    }
)


@dataclass(frozen=True)
class Options:
    """The options of one type."""

    required: tuple[str, ...] = ()
    """Those that a new storage needs; they can't be changed."""
    optional: frozenset[str] = _EVERY
    content: frozenset[str] = BLOCK_CONTENT
    default_content: tuple[str, ...] = ("images",)
    fixed: frozenset[str] = field(default_factory=frozenset)
    """Optional ones that can't be changed either."""
    shared: bool = False
    """Whether all are shared."""
    empty: bool = False
    """Whether one may take no content at all (`none`)."""


_CHAIN = frozenset({"snapshot-as-volume-chain"})
OPTIONS: Mapping[str, Options] = {
    "dir": Options(
        ("path",),
        _FILES | {"shared", "is_mountpoint"},
        FILE_CONTENT,
        ("images", "rootdir"),
        _CHAIN,
        empty=True,
    ),
    "btrfs": Options(
        ("path",),
        (_FILES | {"shared", "is_mountpoint", "nocow"})
        - {"content-dirs", "bwlimit", "snapshot-as-volume-chain"},
        FILE_CONTENT,
        ("images", "rootdir"),
        empty=True,
    ),
    "nfs": Options(
        ("path", "server", "export"),
        _FILES | {"options"},
        FILE_CONTENT,
        fixed=_CHAIN,
        shared=True,
    ),
    "cifs": Options(
        ("path", "server", "share"),
        _FILES | {"subdir", "username", "password", "domain", "smbversion", "options"},
        FILE_CONTENT,
        fixed=_CHAIN,
        shared=True,
    ),
    "cephfs": Options(
        ("path",),
        (_FILES | {"monhost", "subdir", "options", "username", "fuse", "keyring", "fs-name"})
        - {"preallocation", "snapshot-as-volume-chain"},
        FILE_CONTENT - {"images", "rootdir"},
        ("backup",),
        shared=True,
    ),
    "lvmthin": Options(("thinpool", "vgname"), _EVERY, BLOCK_CONTENT, ("images", "rootdir")),
    "lvm": Options(
        ("vgname",),
        _EVERY
        | {"shared", "saferemove", "saferemove-stepsize", "saferemove_throughput", "base"}
        | {"tagged_only", "snapshot-as-volume-chain"},
        fixed=frozenset({"base"}),
    ),
    "zfspool": Options(
        ("pool",),
        _EVERY | {"blocksize", "sparse", "mountpoint"},
        BLOCK_CONTENT,
        ("images", "rootdir"),
    ),
    "rbd": Options(
        (),
        _EVERY | {"monhost", "pool", "data-pool", "namespace", "username", "krbd", "keyring"},
        shared=True,
    ),
}
#: options that are never shown
SECRET = frozenset({"password", "keyring"})
