"""The table of Proxmox VE's errors: message or code → category.

Nearly every error is an HTTP 500 with the text in the reason phrase, or the exit status of a task.
The order matters: the first matching pattern decides. ``seen`` is where the text was found:
a version whose real answer is on record, or the sources.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.failures import Verdict
from common.messages.reports import Category
from compute.hypervisor.port import HypervisorError

CAPTURED = "9.2"
SOURCE = "source 9.2"


@dataclass(frozen=True)
class Pattern:
    """One row of the table."""

    pattern: re.Pattern[str]
    category: Category
    seen: str
    verdict: Verdict | None = None
    """Where to continue, if the text says more about that than its category."""


def _row(
    pattern: str, category: Category, seen: str = CAPTURED, verdict: Verdict | None = None
) -> Pattern:
    return Pattern(re.compile(pattern, re.IGNORECASE), category, seen, verdict)


TABLE: Sequence[Pattern] = (
    # The cluster or node can't act. Without quorum no node of the cluster can.
    _row(r"no quorum", Category.NODE_UNHEALTHY, verdict=Verdict.OTHER_CLUSTER),
    _row(
        r"unable to open file '/etc/pve/.*Permission denied",
        Category.NODE_UNHEALTHY,
        verdict=Verdict.OTHER_CLUSTER,
    ),
    _row(r"hostname lookup '.*' failed|no such cluster node", Category.NODE_UNHEALTHY),
    _row(
        r"no route to host|connection refused", Category.NODE_UNHEALTHY, verdict=Verdict.AWAIT_HOST
    ),
    _row(r"KVM virtualisation configured, but not available", Category.NODE_UNHEALTHY),
    _row(r"cannot allocate memory", Category.NODE_UNHEALTHY, SOURCE),
    _row(r"unable to activate storage|mount error", Category.NODE_UNHEALTHY, SOURCE),
    # Locks: wait.
    _row(r"can't lock file '.*' - got timeout", Category.LOCK),
    _row(r"cfs-lock '.*' error: got lock (request )?timeout", Category.LOCK, SOURCE),
    _row(r"VM is locked \([\w-]+\)", Category.LOCK),
    # Of a VM with the lock `backup` (qemu-server's RunState.pm).
    _row(r"cannot suspend to disk during backup", Category.LOCK, SOURCE),
    _row(r"checksum mismatch \(file change by other user", Category.LOCK),
    _row(r"detected modified configuration", Category.LOCK, SOURCE),
    _row(
        r"HA rule '.*' (already defined|does not exist)|resource ID '.*' already defined"
        r"|no such resource '|cannot use unmanaged resource|, not HA managed",
        Category.LOCK,
        SOURCE,
    ),
    _row(r"invalid lock token provided", Category.LOCK),
    _row(r"VM [0-9]+ is running - destroy failed", Category.LOCK),
    _row(r"base volume '.*' is still in use by linked clone", Category.LOCK),
    # Half done, perhaps.
    _row(r"-locked command timed out", Category.UNKNOWN_OUTCOME, SOURCE),
    _row(r"got no worker upid|start worker failed", Category.UNKNOWN_OUTCOME, SOURCE),
    _row(r"^unexpected status$", Category.UNKNOWN_OUTCOME),
    _row(r"quit/powerdown failed", Category.TASK_TIMEOUT),
    _row(
        r"(command '.*' failed|(zfs|rbd|lvs?\w*) error): got timeout",
        Category.UNKNOWN_OUTCOME,
        SOURCE,
    ),
    # Something is in the way.
    _row(r"VM [0-9]+ already exists on node", Category.STORAGE_CONFLICT),
    _row(r"config file already exists", Category.STORAGE_CONFLICT),
    _row(r"atomic file '/etc/pve/.*' failed: File exists", Category.STORAGE_CONFLICT, SOURCE),
    _row(
        r"(disk image|dataset|volume|file|already attached).*(already )?exists",
        Category.STORAGE_CONFLICT,
    ),
    _row(r"already attached at", Category.STORAGE_CONFLICT, SOURCE),
    # No room.
    _row(
        r"no space left|out of space|not enough (free )?space|insufficient free space"
        r"|free space in thin pool|image size is too large|(exceeds? .*|disk )quota",
        Category.STORAGE_FULL,
    ),
    # Of a ZFS volume's reservation (libzfs_util.c); errno alone, as pve-qemu's `vma extract` and
    # savevm-async print it (ENOSPC, EDQUOT).
    _row(r"greater than available space", Category.STORAGE_FULL, SOURCE),
    _row(r"(failed|error) \(?-(28|122)\b", Category.STORAGE_FULL, SOURCE),
    # The image.
    _row(r"failed to stat '[^']*/import/", Category.IMAGE_NOT_FOUND),
    _row(r"can't find file '", Category.IMAGE_NOT_FOUND),
    _row(
        r"cannot import from '.*' - .*(no such|does not exist)", Category.IMAGE_NOT_FOUND, SOURCE
    ),
    _row(r"Image is not in \w+ format|checksum mismatch: got", Category.IMAGE_CORRUPT),
    # In the log of a task that only says that `qemu-img convert` failed. A read error of the
    # underlying disk is not the image's fault.
    _row(
        r"qemu-img: (could not open '[^']*/import/"
        r"|error while reading at byte [0-9]+: (?!Input/output error))",
        Category.IMAGE_CORRUPT,
        SOURCE,
    ),
    # Networks.
    _row(r"bridge '.*' does not exist|no such bridge", Category.NETWORK),
    _row(r"/sdn/zones/.*SDN\.Use", Category.NETWORK),
    # Privileges.
    _row(r"Permission check failed \(pool '.*' does not exist", Category.CONFIGURATION),
    _row(r"Permission check failed|only root (can|may)", Category.AUTHORIZATION),
    _row(r"authentication fail|no ticket|invalid csrf token", Category.AUTHORIZATION),
    # Not in this version.
    _row(r"Method '.*' not implemented|method '.*' not available", Category.API_NOT_SUPPORTED),
    _row(r"Linked clone feature is not supported", Category.API_NOT_SUPPORTED),
    # Wrong for this node.
    _row(
        r"uses local storage|can't clone to non-shared storage|is not available on node"
        r"|content type .*(not available|is not allowed)|does not support (vm images|content)",
        Category.CONFIGURATION,
    ),
    _row(
        r"storage '.*' (does not exist|is disabled|is not (online|active|enabled))",
        Category.CONFIGURATION,
    ),
    # Among a cluster's zones with VNIs (VxlanPlugin, EvpnPlugin, vnet_update_hook).
    _row(
        r"vxlan tag [0-9]+ already exist in vnet",
        Category.PROTECTED,
        SOURCE,
        verdict=Verdict.OTHER_VNI,
    ),
    _row(r"Parameter verification failed", Category.CONFIGURATION),
    _row(r"parameter '.*' not allowed", Category.CONFIGURATION),
    _row(r"unable to parse (directory )?volume|no options specified", Category.CONFIGURATION),
    _row(r"protection mode enabled", Category.PROTECTED),
    _row(r"volume is still in use \(snapshot\?\)", Category.PROTECTED, SOURCE),
    _row(r"Rule '.*' is invalid", Category.CONFIGURATION, SOURCE),
    _row(r"used in HA resources and purge parameter not set", Category.CONFIGURATION, SOURCE),
    _row(r"unable to find command", Category.CONFIGURATION),
)

_BY_STATUS = {
    400: Category.CONFIGURATION,
    401: Category.AUTHORIZATION,
    403: Category.AUTHORIZATION,
    501: Category.API_NOT_SUPPORTED,
    595: Category.NODE_UNHEALTHY,
    596: Category.UNKNOWN_OUTCOME,
    597: Category.UNKNOWN_OUTCOME,
    598: Category.UNKNOWN_OUTCOME,
    599: Category.UNKNOWN_OUTCOME,
    502: Category.UNKNOWN_OUTCOME,
    503: Category.UNKNOWN_OUTCOME,
    504: Category.UNKNOWN_OUTCOME,
}

_NO_CONFIG = re.compile(
    r"Configuration file '.*' does not exist|unable to find configuration file for VM", re.I
)
_EXISTS = re.compile(
    r"VM [0-9]+ already exists on node|config file already exists"
    r"|atomic file '/etc/pve/nodes/[^']*/qemu-server/[0-9]+\.conf' failed: File exists",
    re.I,
)
_NO_VOLUME = re.compile(
    r"failed to stat '|volume_size_info on '.*' failed|no such volume"
    # ZFS, RBD and LVM say so by their own tools.
    r"|zfs error: cannot open '[^']*/[^']*': dataset does not exist"
    r"|error opening image \S+: \(2\) No such file or directory"
    r"|can't get size of '.*Failed to find logical volume",
    re.I,
)
_NO_STORAGE = re.compile(r"^storage '[^']*' does not exist", re.I)
_IN_USE = re.compile(r"unable to delete '([^']+)' - volume is still in use", re.I)
_LOCKED = re.compile(r"VM is locked \(|cannot suspend to disk during backup", re.I)
_STORAGE_LOCK = re.compile(
    r"can't lock file '[^']*/pve-storage-([^']+)' - got timeout"
    r"|cfs-lock 'storage-([^']+)' error: got lock (?:request )?timeout",
    re.I,
)
#: of a VM that is younger than a cycle of the statistics daemon, and of archives that a file from
#: before an upgrade doesn't have (PVE::RRD)
_NOT_RECORDED = re.compile(
    r"RRD error: .*: No such file or directory|got wrong time resolution \([0-9]+ != [0-9]+\)",
    re.I,
)
_NO_TASK = re.compile(r"no such task", re.I)

#: from an id's own lock while it is being created
_BEING_CREATED = re.compile(r"can't lock file '.*lock-[0-9]+\.conf' - got timeout", re.I)

#: 596 to 599 and a gateway's own: the connection broke
_LOST_CODES = frozenset({502, 503, 504, 596, 597, 598, 599})
#: 595 to 599 come from the proxying node, about its connection to the other node
_PROXY_CODES = range(595, 600)


class ApiError(HypervisorError):
    """An answer of the API, or the lack of one. ``status`` is 0 when there was none."""

    def __init__(
        self,
        category: Category,
        message: str,
        *,
        status: int = 0,
        text: str = "",
        lost: bool = False,
        verdict: Verdict | None = None,
    ) -> None:
        verdict = verdict or verdict_of(text or message, status)
        super().__init__(category, message, verdict=verdict)
        self.status = status
        self.lost = lost or status in _LOST_CODES
        """Whether there was a way and the answer got lost on it: a read may be tried again."""
        self.text = text or message

    @property
    def no_config(self) -> bool:
        """Whether it says that the node has no VM of this id. Not: that the VM is gone."""
        return _NO_CONFIG.search(self.text) is not None

    @property
    def id_taken(self) -> bool:
        """Whether the VMID was in use, or was just being taken."""
        return bool(_EXISTS.search(self.text) or _BEING_CREATED.search(self.text))

    @property
    def is_unknown(self) -> bool:
        """Whether it is a 500 with an unknown text: the request may have been served."""
        return self.status == 500 and not self.no_config and _found(self.text) is None

    @property
    def may_look_different(self) -> bool:
        """Whether another look may show success or a way to it: somebody had the lock, or
        wrote at the same time, or the outcome is unknown."""
        return self.is_unknown or self.category in (Category.LOCK, Category.UNKNOWN_OUTCOME)

    @property
    def locked(self) -> bool:
        """Whether it says that a VM's configuration carries a lock."""
        return _LOCKED.search(self.text) is not None

    @property
    def config_lock(self) -> bool:
        """Whether the lock of a VM's configuration was not free in time."""
        return _BEING_CREATED.search(self.text) is not None

    @property
    def storage_lock(self) -> str | None:
        """The storage whose lock was not free in time, or None."""
        found = _STORAGE_LOCK.search(self.text)
        return None if found is None else found[1] or found[2]

    @property
    def no_volume(self) -> bool:
        """Whether it says that a volume isn't there."""
        return self.status == 500 and _NO_VOLUME.search(self.text) is not None

    @property
    def no_storage(self) -> bool:
        """Whether it says that the cluster's configuration has no such storage."""
        return self.status == 500 and _NO_STORAGE.search(self.text) is not None

    @property
    def in_use(self) -> str | None:
        """The disk that was not freed because a snapshot, or another drive, names it, or None."""
        found = _IN_USE.search(self.text)
        return None if found is None else found[1]

    @property
    def not_recorded(self) -> bool:
        """Whether it says that there are no such round-robin data."""
        return _NOT_RECORDED.search(self.text) is not None

    @property
    def no_task(self) -> bool:
        """Whether it says that there is no such task."""
        return _NO_TASK.search(self.text) is not None


def _found(text: str) -> Pattern | None:
    return next((row for row in TABLE if row.pattern.search(text)), None)


def category_of(text: str, status: int = 500) -> Category:
    """Return the category of a reason phrase or a task's exit status."""
    if status in _PROXY_CODES or status == 401:
        return _BY_STATUS[status]
    row = _found(text)
    if row is not None:
        return row.category
    if status == 500 and not text.strip():
        return Category.UNKNOWN_OUTCOME
    return _BY_STATUS.get(status, Category.CREATION_FAILED)


#: categories that a task's log shows where its exit status has none
_IN_LOGS = (Category.STORAGE_FULL, Category.IMAGE_CORRUPT)


def category_of_task(exit_status: str, log: Sequence[str]) -> Category:
    """Return the category of a failed task: by its exit status, else by what its log says of the
    image or the storage: of a command that failed the status has only the exit code."""
    category = category_of(exit_status)
    if category is not Category.CREATION_FAILED:
        return category
    said = {category_of(line) for line in log}
    return next((one for one in _IN_LOGS if one in said), category)


def verdict_of(text: str, status: int = 500) -> Verdict | None:
    """Return where to continue, if a text or a code says more about it than its category.

    An error on the way to the node is temporary: mostly its daemons restart.
    """
    if status in _PROXY_CODES or status in _LOST_CODES:
        return Verdict.AWAIT_HOST
    row = _found(text)
    return None if row is None else row.verdict


def api_error(status: int, text: str, errors: object = None) -> ApiError:
    """Return the error of an HTTP answer; ``errors`` is the map of refused parameters."""
    parts = " ".join(part for part in (text.strip(), _refused(errors)) if part)
    message = f"Proxmox VE answered {status}: {parts}"
    return ApiError(category_of(parts, status), message, status=status, text=parts)


def _refused(errors: object) -> str:
    """Return the refused parameters as text. proxmoxer passes a body that is no JSON as bytes."""
    if not isinstance(errors, Mapping):
        return str(errors or "")
    return "; ".join(
        f"{name}: {str(reason).strip()}"
        for name, reason in errors.items()
        if not isinstance(reason, bytes)
    )
