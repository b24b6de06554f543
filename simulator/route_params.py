"""Parameters of calls that take many, or that several calls share."""

from __future__ import annotations

from simulator import checks
from simulator.checks import boolean, integer, one_of, pattern, storage_id
from simulator.params import Param

TEXT, BOOL, NUMBER = Param(), Param(boolean, kind="boolean"), Param(integer(0), kind="integer")
RRD: dict[str, Param] = {
    "timeframe": Param(one_of("hour", "day", "week", "month", "year"), True),
    "cf": Param(one_of("AVERAGE", "MAX")),
}
NAMED: dict[str, Param] = {
    "node": Param(checks.node_name, True),
    "vmid": Param(checks.vmid, True, "integer"),
    "storage": Param(storage_id, True),
    "snapname": Param(checks.snapshot_name, True),
    "poolid": Param(checks.bare_config_id, True),
    "upid": Param(None, True),
    "volume": Param(None, True),
    "userid": Param(None, True),
    "tokenid": Param(checks.config_id, True),
    "roleid": Param(checks.config_id, True),
    "id": Param(checks.config_id, True),
    "sid": Param(checks.ha_sid, True),
    "rule": Param(checks.config_id, True),
    "group": Param(checks.config_id, True),
    "zone": Param(checks.sdn_id, True),
    "vnet": Param(checks.sdn_id, True),
    "subnet": Param(None, True),
    "ipam": Param(None, True),
    "name": Param(checks.firewall_name(64, 2), True),
    "cidr": Param(checks.address_or_network, True),
    "pos": Param(integer(0), True, "integer"),
}
SIZE = pattern(r"^\+?\d+(\.\d+)?[KMGT]?$")
CHECKSUM = {
    "checksum": TEXT,
    "checksum-algorithm": Param(one_of("md5", "sha1", "sha224", "sha256", "sha384", "sha512")),
}
SKIP = {"skiplock": BOOL}
CONFIGURE = {
    **SKIP,
    "delete": TEXT,
    "revert": TEXT,
    "force": BOOL,
    "digest": Param(checks.text(40)),
}
CREATE = {
    "pool": TEXT,
    "start": BOOL,
    "ha-managed": BOOL,
    "storage": Param(storage_id),
    "unique": BOOL,
    "force": BOOL,
    "archive": TEXT,
    "bwlimit": NUMBER,
    "live-restore": BOOL,
    "import-working-storage": Param(storage_id),
}
CLONE = {
    "newid": Param(checks.vmid, True, "integer"),
    "name": Param(checks.dns_name),
    "description": TEXT,
    "pool": TEXT,
    "snapname": TEXT,
    "storage": Param(storage_id),
    "format": Param(one_of("raw", "qcow2", "vmdk")),
    "full": BOOL,
    "target": Param(checks.node_name),
    "bwlimit": NUMBER,
}
MIGRATE = {
    "target": Param(checks.node_name, True),
    "online": BOOL,
    "force": BOOL,
    "migration_type": Param(one_of("secure", "insecure")),
    "migration_network": TEXT,
    "with-local-disks": BOOL,
    "targetstorage": TEXT,
    "bwlimit": NUMBER,
    "with-conntrack-state": BOOL,
}
MAP_PCI = {
    "id": Param(checks.config_id, True),
    "map": Param(None, True),
    "description": TEXT,
    "mdev": BOOL,
    "live-migration-capable": BOOL,
}
HA_TYPE, HA_RULE_TYPE = (
    Param(one_of("ct", "vm")),
    Param(one_of("node-affinity", "resource-affinity")),
)
_HA_OPTIONS = {
    "comment": TEXT,
    "failback": BOOL,
    "group": Param(checks.config_id),
    "max_relocate": NUMBER,
    "max_restart": NUMBER,
    "state": Param(one_of("started", "stopped", "enabled", "disabled", "ignored")),
}
HA_RESOURCE = {**_HA_OPTIONS, "sid": Param(checks.ha_sid, True), "type": HA_TYPE}
HA_CHANGE = {**_HA_OPTIONS, "delete": TEXT, "digest": TEXT}
_HA_RULE = {
    "affinity": Param(one_of("positive", "negative")),
    "comment": Param(checks.text(4096)),
    "disable": BOOL,
    "nodes": TEXT,
    "resources": TEXT,
    "strict": BOOL,
    "type": Param(one_of("node-affinity", "resource-affinity"), True),
}
HA_RULE = {**_HA_RULE, "rule": Param(checks.config_id, True), "resources": Param(None, True)}
HA_RULE_CHANGE = {**_HA_RULE, "delete": TEXT, "digest": TEXT}
HA_GROUP = {
    "comment": TEXT,
    "group": Param(checks.config_id, True),
    "nodes": Param(None, True),
    "nofailback": BOOL,
    "restricted": BOOL,
    "type": Param(one_of("group")),
}
TASKS = {
    "errors": BOOL,
    "limit": NUMBER,
    "since": NUMBER,
    "source": Param(one_of("archive", "active", "all")),
    "start": NUMBER,
    "statusfilter": TEXT,
    "typefilter": TEXT,
    "until": NUMBER,
    "userfilter": TEXT,
    "vmid": Param(checks.vmid, kind="integer"),
}
START = {
    **SKIP,
    "timeout": NUMBER,
    "machine": TEXT,
    "force-cpu": TEXT,
    "migratedfrom": TEXT,
    "migration_network": TEXT,
    "migration_type": TEXT,
    "nets-host-mtu": TEXT,
    "stateuri": TEXT,
    "targetstorage": TEXT,
    "with-conntrack-state": BOOL,
}
STOP = {
    **SKIP,
    "timeout": NUMBER,
    "keepActive": BOOL,
    "overrule-shutdown": BOOL,
    "migratedfrom": TEXT,
}
SHUTDOWN = {**SKIP, "timeout": NUMBER, "keepActive": BOOL, "forceStop": BOOL}
