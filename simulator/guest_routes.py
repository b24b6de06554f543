"""Routes that migrate, copy, save and restore guests and their disks; see `routes`."""

from __future__ import annotations

from simulator import backup_api, bulk, checks, ha_manager, vzdump
from simulator.checks import one_of, pattern, storage_id
from simulator.params import Param
from simulator.qemu import move
from simulator.route_params import BOOL, NAMED, NUMBER, TEXT
from simulator.rows import AUTHENTICATED, Row

_AUDIT = ("/", "Sys.Audit")
_CONSOLE = ("/", "Sys.Console")
_DISK = pattern(r"^(ide|sata|scsi|virtio|unused)\d+$|^efidisk0$|^tpmstate0$")
_MOVE = {
    "disk": Param(_DISK, True),
    "storage": Param(storage_id),
    "format": Param(one_of("raw", "qcow2", "vmdk")),
    "delete": BOOL,
    "digest": Param(checks.text(40)),
    "bwlimit": NUMBER,
    "target-vmid": Param(checks.vmid, kind="integer"),
    "target-disk": Param(_DISK),
    "target-digest": Param(checks.text(40)),
}
_VZDUMP = {
    "node": Param(checks.node_name),
    **dict.fromkeys(("all", "protected", "quiet", "remove", "stdexcludes", "stop"), BOOL),
    **dict.fromkeys(("bwlimit", "ionice", "lockwait", "pigz", "stopwait", "zstd"), NUMBER),
    **dict.fromkeys(
        (
            "exclude",
            "fleecing",
            "job-id",
            "mailto",
            "notes-template",
            "performance",
            "pool",
            "prune-backups",
            "vmid",
        ),
        TEXT,
    ),
    "storage": Param(storage_id),
    "mode": Param(one_of("snapshot", "suspend", "stop")),
    "compress": Param(one_of("0", "1", "gzip", "lzo", "zstd")),
    "mailnotification": Param(one_of("always", "failure")),
    "notification-mode": Param(one_of("auto", "legacy-sendmail", "notification-system")),
}
_OF_NODE = {"max-workers": NUMBER, "vms": TEXT}
_VMS = {**_OF_NODE, "maxworkers": NUMBER}
_BULK = "/cluster/bulk-action"
_TARGET = Param(checks.node_name, True)
_MIGRATE = {"target": _TARGET, "with-local-disks": BOOL}
_PRUNE = {
    "prune-backups": TEXT,
    "type": Param(one_of("qemu", "lxc")),
    "vmid": Param(checks.vmid, kind="integer"),
}
_HA_MOVE = {"node": NAMED["node"]}
_ST = "/nodes/{node}/storage/{storage}"
_READ = ("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace")

ROWS: tuple[Row, ...] = (
    (
        "POST",
        "/nodes/{node}/qemu/{vmid}/move_disk",
        "pn",
        move.move,
        ("/vms/{vmid}", "VM.Config.Disk"),
        _MOVE,
    ),
    ("POST", "/nodes/{node}/vzdump", "pn", vzdump.dump, AUTHENTICATED, _VZDUMP),
    (
        "GET",
        "/nodes/{node}/vzdump/defaults",
        "n",
        backup_api.defaults,
        AUTHENTICATED,
        {"storage": Param(storage_id)},
    ),
    (
        "GET",
        "/nodes/{node}/vzdump/extractconfig",
        "pn",
        backup_api.extract_config,
        AUTHENTICATED,
        {"volume": NAMED["volume"]},
    ),
    ("GET", f"{_ST}/prunebackups", "pn", backup_api.prunable, _READ, _PRUNE),
    ("GET", "/cluster/backup", "", backup_api.jobs, _AUDIT, {}),
    (
        "GET",
        "/cluster/backup-info/not-backed-up",
        "p",
        backup_api.not_backed_up,
        _AUDIT,
        {},
    ),
    ("GET", _BULK, "", bulk.index, AUTHENTICATED, {}),
    ("GET", f"{_BULK}/guest", "", bulk.guest_index, AUTHENTICATED, {}),
    ("POST", f"{_BULK}/guest/start", "p", bulk.start, AUTHENTICATED, {**_VMS, "timeout": NUMBER}),
    (
        "POST",
        f"{_BULK}/guest/shutdown",
        "p",
        bulk.shutdown,
        AUTHENTICATED,
        {**_VMS, "timeout": NUMBER, "force-stop": BOOL},
    ),
    (
        "POST",
        f"{_BULK}/guest/suspend",
        "p",
        bulk.suspend,
        AUTHENTICATED,
        {**_VMS, "to-disk": BOOL, "statestorage": Param(storage_id)},
    ),
    (
        "POST",
        f"{_BULK}/guest/migrate",
        "p",
        bulk.migrate,
        AUTHENTICATED,
        {**_VMS, **_MIGRATE, "online": BOOL},
    ),
    (
        "POST",
        "/nodes/{node}/startall",
        "pn",
        bulk.start_all,
        AUTHENTICATED,
        {**_OF_NODE, "force": BOOL},
    ),
    (
        "POST",
        "/nodes/{node}/stopall",
        "pn",
        bulk.stop_all,
        AUTHENTICATED,
        {**_OF_NODE, "timeout": NUMBER, "force-stop": BOOL},
    ),
    ("POST", "/nodes/{node}/suspendall", "pn", bulk.suspend_all, AUTHENTICATED, _OF_NODE),
    (
        "POST",
        "/nodes/{node}/migrateall",
        "pn",
        bulk.migrate_all,
        AUTHENTICATED,
        {**_VMS, **_MIGRATE},
    ),
    ("GET", "/cluster/ha", "", ha_manager.index, _AUDIT, {}),
    ("GET", "/cluster/ha/status/current", "", ha_manager.current, _AUDIT, {}),
    ("GET", "/cluster/ha/status/manager_status", "", ha_manager.manager, _AUDIT, {}),
    (
        "POST",
        "/cluster/ha/resources/{sid}/migrate",
        "p",
        ha_manager.migrate,
        _CONSOLE,
        _HA_MOVE,
    ),
    (
        "POST",
        "/cluster/ha/resources/{sid}/relocate",
        "p",
        ha_manager.relocate,
        _CONSOLE,
        _HA_MOVE,
    ),
)
