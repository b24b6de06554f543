"""The whole API as one table: method, path, handler, permission, parameters, who answers.

One table, and therefore long. `protected` calls are answered by the privileged daemon (595 when
it is down, 596 when it hangs); `proxied` calls are answered by the node that the path names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator import access_api as access
from simulator import (
    checks,
    cluster_api,
    desk_routes,
    firewall_routes,
    guest_routes,
    ha_api,
    mapping_api,
    node_api,
    options_api,
    pool_api,
    resources,
    sdn_routes,
    statistics,
    storage_api,
    upload,
    volume_api,
)
from simulator.checks import integer, one_of, pattern, storage_id
from simulator.params import Param, Schema
from simulator.qemu import (
    agent,
    clone,
    config,
    create,
    destroy,
    migrate,
    power,
    resize,
    snapshot,
    status,
)
from simulator.route_params import (
    BOOL,
    CHECKSUM,
    CLONE,
    CONFIGURE,
    CREATE,
    HA_CHANGE,
    HA_GROUP,
    HA_RESOURCE,
    HA_RULE,
    HA_RULE_CHANGE,
    HA_RULE_TYPE,
    HA_TYPE,
    MAP_PCI,
    MIGRATE,
    NAMED,
    NUMBER,
    RRD,
    SHUTDOWN,
    SIZE,
    SKIP,
    START,
    STOP,
    TASKS,
    TEXT,
)
from simulator.rows import AUTHENTICATED, PUBLIC, Handler, Permission, Row


@dataclass(frozen=True)
class Route:
    """One call. `permission`: any of some privileges on a path, or who may always call."""

    method: str
    path: str
    handler: Handler
    schema: Schema
    permission: Permission
    protected: bool
    proxied: bool
    token: bool = True
    modern: bool = False

    @property
    def public(self) -> bool:
        """Return whether the call needs no login."""
        return self.permission == PUBLIC


def _schema(params: Mapping[str, Param], *, vm: bool = False) -> Schema:
    return Schema(params, vm)


_VM = "/nodes/{node}/qemu/{vmid}"
_ST = "/nodes/{node}/storage/{storage}"
_AUDIT = ("/vms/{vmid}", "VM.Audit")
_POWER = ("/vms/{vmid}", "VM.PowerMgmt")
_CONFIG = (
    "/vms/{vmid}",
    *(
        f"VM.Config.{part}"
        for part in ["Disk", "CDROM", "CPU", "Memory", "Network", "HWType", "Options", "Cloudinit"]
    ),
)
_READ = ("/storage/{storage}", "Datastore.Audit", "Datastore.AllocateSpace")
_AGENT = ("/vms/{vmid}", "VM.GuestAgent.Audit", "VM.GuestAgent.Unrestricted", "VM.Monitor")
_ROOT_AUDIT = ("/", "Sys.Audit")
_ROOT_MODIFY = ("/", "Sys.Modify")
_ROOT_CONSOLE = ("/", "Sys.Console")
_USER_ADMIN = ("/access/groups", "User.Modify")
_MAPPING = ("/mapping/pci", "Mapping.Modify")
_CHECK_NODE = {"check-node": Param(checks.node_name)}
_NODE_AUDIT = ("/nodes/{node}", "Sys.Audit")
_SNAPSHOT = ("/vms/{vmid}", "VM.Snapshot")

_ROWS: tuple[Row, ...] = (
    ("GET", "/version", "", cluster_api.version, AUTHENTICATED, {}),
    ("GET", "/access/ticket", "", access.no_ticket, PUBLIC, {}),
    (
        "POST",
        "/access/ticket",
        "pt",
        access.ticket,
        PUBLIC,
        {
            "username": Param(None, True),
            "password": Param(None, True),
            "realm": TEXT,
            "otp": TEXT,
            "path": TEXT,
            "privs": TEXT,
            "new-format": BOOL,
            "tfa-challenge": TEXT,
        },
    ),
    (
        "GET",
        "/access/permissions",
        "",
        access.permissions,
        AUTHENTICATED,
        {"path": TEXT, "userid": Param()},
    ),
    ("GET", "/access/users", "p", access.users, AUTHENTICATED, {"enabled": BOOL, "full": BOOL}),
    (
        "POST",
        "/access/users",
        "p",
        access.create_user,
        _USER_ADMIN,
        {
            "password": Param(checks.text(64, 8)),
            "comment": TEXT,
            "enable": BOOL,
            "expire": NUMBER,
            "email": TEXT,
            "firstname": TEXT,
            "lastname": TEXT,
            "groups": TEXT,
            "keys": TEXT,
            "userid": Param(None, True),
        },
    ),
    ("DELETE", "/access/users/{userid}", "p", access.delete_user, _USER_ADMIN, {}),
    ("GET", "/access/users/{userid}/token", "", access.tokens, AUTHENTICATED, {}),
    ("GET", "/access/users/{userid}/token/{tokenid}", "", access.token, AUTHENTICATED, {}),
    (
        "POST",
        "/access/users/{userid}/token/{tokenid}",
        "p",
        access.create_token,
        AUTHENTICATED,
        {"comment": TEXT, "expire": NUMBER, "privsep": BOOL},
    ),
    (
        "DELETE",
        "/access/users/{userid}/token/{tokenid}",
        "p",
        access.delete_token,
        AUTHENTICATED,
        {},
    ),
    ("GET", "/access/roles", "", access.roles, AUTHENTICATED, {}),
    (
        "POST",
        "/access/roles",
        "p",
        access.create_role,
        ("/access", "Sys.Modify"),
        {"roleid": Param(checks.config_id, True), "privs": TEXT},
    ),
    (
        "PUT",
        "/access/roles/{roleid}",
        "p",
        access.change_role,
        ("/access", "Sys.Modify"),
        {"privs": TEXT, "append": BOOL},
    ),
    ("DELETE", "/access/roles/{roleid}", "p", access.delete_role, ("/access", "Sys.Modify"), {}),
    ("GET", "/access/acl", "", access.grants, AUTHENTICATED, {}),
    (
        "PUT",
        "/access/acl",
        "p",
        access.set_grants,
        AUTHENTICATED,
        {
            "path": Param(None, True),
            "roles": Param(None, True),
            "users": TEXT,
            "tokens": TEXT,
            "groups": TEXT,
            "propagate": BOOL,
            "delete": BOOL,
        },
    ),
    ("GET", "/cluster/status", "p", cluster_api.status, _ROOT_AUDIT, {}),
    (
        "GET",
        "/cluster/resources",
        "",
        resources.resources,
        AUTHENTICATED,
        {"type": Param(one_of("vm", "storage", "node", "sdn", "network"))},
    ),
    ("GET", "/cluster/options", "", options_api.options, AUTHENTICATED, {}),
    ("PUT", "/cluster/options", "p", options_api.set_options, _ROOT_MODIFY, options_api.PARAMS),
    (
        "GET",
        "/cluster/nextid",
        "",
        cluster_api.nextid,
        AUTHENTICATED,
        {"vmid": Param(checks.vmid, kind="integer")},
    ),
    ("GET", "/cluster/tasks", "", cluster_api.tasks, AUTHENTICATED, {}),
    ("GET", "/cluster/mapping/pci", "", mapping_api.mappings, AUTHENTICATED, _CHECK_NODE),
    ("POST", "/cluster/mapping/pci", "p", mapping_api.create, _MAPPING, MAP_PCI),
    ("DELETE", "/cluster/mapping/pci/{id}", "p", mapping_api.delete, _MAPPING, {}),
    ("GET", "/cluster/ha/resources", "", ha_api.resources, _ROOT_AUDIT, {"type": HA_TYPE}),
    ("POST", "/cluster/ha/resources", "p", ha_api.add_resource, _ROOT_CONSOLE, HA_RESOURCE),
    ("GET", "/cluster/ha/resources/{sid}", "", ha_api.resource, _ROOT_AUDIT, {}),
    ("PUT", "/cluster/ha/resources/{sid}", "p", ha_api.change_resource, _ROOT_CONSOLE, HA_CHANGE),
    (
        "DELETE",
        "/cluster/ha/resources/{sid}",
        "p",
        ha_api.delete_resource,
        _ROOT_CONSOLE,
        {"purge": BOOL},
    ),
    (
        "GET",
        "/cluster/ha/rules",
        "9",
        ha_api.rules,
        _ROOT_AUDIT,
        {"type": HA_RULE_TYPE, "resource": TEXT},
    ),
    ("POST", "/cluster/ha/rules", "p9", ha_api.add_rule, _ROOT_CONSOLE, HA_RULE),
    ("GET", "/cluster/ha/rules/{rule}", "9", ha_api.rule, _ROOT_AUDIT, {}),
    ("PUT", "/cluster/ha/rules/{rule}", "p9", ha_api.change_rule, _ROOT_CONSOLE, HA_RULE_CHANGE),
    ("DELETE", "/cluster/ha/rules/{rule}", "p9", ha_api.delete_rule, _ROOT_CONSOLE, {}),
    ("GET", "/cluster/ha/groups", "", ha_api.groups, _ROOT_AUDIT, {}),
    ("POST", "/cluster/ha/groups", "p", ha_api.add_group, _ROOT_CONSOLE, HA_GROUP),
    ("DELETE", "/cluster/ha/groups/{group}", "p", ha_api.delete_group, _ROOT_CONSOLE, {}),
    (
        "GET",
        "/pools",
        "",
        pool_api.pools,
        AUTHENTICATED,
        {"poolid": Param(checks.bare_config_id), "type": TEXT},
    ),
    (
        "POST",
        "/pools",
        "p",
        pool_api.create_pool,
        ("/pool/{poolid}", "Pool.Allocate"),
        {"poolid": NAMED["poolid"], "comment": TEXT},
    ),
    (
        "PUT",
        "/pools",
        "p",
        pool_api.update_pool,
        ("/pool/{poolid}", "Pool.Allocate"),
        {
            "poolid": NAMED["poolid"],
            "comment": TEXT,
            "vms": TEXT,
            "storage": TEXT,
            "delete": BOOL,
            "allow-move": BOOL,
        },
    ),
    (
        "DELETE",
        "/pools",
        "p",
        pool_api.delete_pool,
        ("/pool/{poolid}", "Pool.Allocate"),
        {"poolid": NAMED["poolid"]},
    ),
    (
        "GET",
        "/pools/{poolid}",
        "",
        pool_api.pool,
        ("/pool/{poolid}", "Pool.Audit"),
        {"type": TEXT},
    ),
    (
        "PUT",
        "/pools/{poolid}",
        "p",
        pool_api.update_pool,
        ("/pool/{poolid}", "Pool.Allocate"),
        {"comment": TEXT, "vms": TEXT, "storage": TEXT, "delete": BOOL, "allow-move": BOOL},
    ),
    (
        "DELETE",
        "/pools/{poolid}",
        "p",
        pool_api.delete_pool,
        ("/pool/{poolid}", "Pool.Allocate"),
        {},
    ),
    ("GET", "/storage", "", storage_api.configurations, AUTHENTICATED, {"type": TEXT}),
    (
        "GET",
        "/storage/{storage}",
        "",
        storage_api.configuration,
        ("/storage/{storage}", "Datastore.Allocate"),
        {},
    ),
    (
        "PUT",
        "/storage/{storage}",
        "p",
        storage_api.configure,
        ("/storage", "Datastore.Allocate"),
        {"content": TEXT, "nodes": TEXT, "disable": BOOL, "delete": TEXT, "digest": TEXT},
    ),
    ("GET", "/nodes", "", resources.nodes, AUTHENTICATED, {}),
    ("GET", "/nodes/{node}", "", node_api.index, AUTHENTICATED, {}),
    ("GET", "/nodes/{node}/status", "n", node_api.status, _NODE_AUDIT, {}),
    ("GET", "/nodes/{node}/version", "n", cluster_api.version, AUTHENTICATED, {}),
    ("GET", "/nodes/{node}/time", "n", cluster_api.clock, _NODE_AUDIT, {}),
    (
        "GET",
        "/nodes/{node}/capabilities/qemu/machines",
        "n",
        mapping_api.machines,
        AUTHENTICATED,
        {},
    ),
    ("GET", "/nodes/{node}/network", "n", node_api.network, AUTHENTICATED, {"type": TEXT}),
    ("GET", "/nodes/{node}/lxc", "pn", node_api.containers, AUTHENTICATED, {}),
    ("GET", "/nodes/{node}/tasks", "n", node_api.tasks, AUTHENTICATED, TASKS),
    ("GET", "/nodes/{node}/tasks/{upid}", "", node_api.task_index, AUTHENTICATED, {}),
    ("DELETE", "/nodes/{node}/tasks/{upid}", "pn", node_api.stop_task, AUTHENTICATED, {}),
    ("GET", "/nodes/{node}/tasks/{upid}/status", "pn", node_api.task_status, AUTHENTICATED, {}),
    (
        "GET",
        "/nodes/{node}/tasks/{upid}/log",
        "pn",
        node_api.task_log,
        AUTHENTICATED,
        {"start": NUMBER, "limit": NUMBER, "download": BOOL},
    ),
    (
        "GET",
        "/nodes/{node}/storage",
        "pn",
        storage_api.node_storages,
        AUTHENTICATED,
        {
            "content": TEXT,
            "enabled": BOOL,
            "format": BOOL,
            "storage": Param(storage_id),
            "target": Param(checks.node_name),
        },
    ),
    ("GET", _ST, "", storage_api.node_storage_index, _READ, {}),
    ("GET", f"{_ST}/status", "pn", storage_api.node_storage, _READ, {}),
    (
        "GET",
        f"{_ST}/content",
        "pn",
        storage_api.contents,
        _READ,
        {"content": TEXT, "vmid": Param(checks.vmid, kind="integer")},
    ),
    (
        "POST",
        f"{_ST}/content",
        "pn",
        volume_api.allocate,
        ("/storage/{storage}", "Datastore.AllocateSpace"),
        {
            "vmid": NAMED["vmid"],
            "filename": Param(None, True),
            "size": Param(pattern(r"^\d+[MG]?$"), True),
            "format": Param(one_of("raw", "qcow2", "subvol", "vmdk")),
        },
    ),
    ("GET", f"{_ST}/content/{{volume}}", "pn", volume_api.one_content, AUTHENTICATED, {}),
    (
        "PUT",
        f"{_ST}/content/{{volume}}",
        "pn",
        volume_api.change,
        AUTHENTICATED,
        {"notes": TEXT, "protected": BOOL},
    ),
    (
        "DELETE",
        f"{_ST}/content/{{volume}}",
        "pn",
        volume_api.delete,
        AUTHENTICATED,
        {"delay": NUMBER},
    ),
    (
        "POST",
        f"{_ST}/upload",
        "p",
        upload.upload,
        ("/storage/{storage}", "Datastore.AllocateTemplate"),
        {
            "content": Param(one_of("iso", "vztmpl", "import"), True),
            "filename": Param(None, True),
            "tmpfilename": TEXT,
            **CHECKSUM,
        },
    ),
    (
        "POST",
        f"{_ST}/download-url",
        "pn",
        storage_api.download,
        ("/storage/{storage}", "Datastore.AllocateTemplate"),
        {
            "content": Param(one_of("iso", "vztmpl", "import"), True),
            "filename": Param(None, True),
            "url": Param(pattern(r"^https?://.+"), True),
            "verify-certificates": BOOL,
            "compression": TEXT,
            **CHECKSUM,
        },
    ),
    ("GET", "/nodes/{node}/qemu", "pn", status.listing, AUTHENTICATED, {"full": BOOL}),
    (
        "POST",
        "/nodes/{node}/qemu",
        "pnv",
        create.create,
        AUTHENTICATED,
        {"vmid": NAMED["vmid"], **CREATE},
    ),
    ("GET", _VM, "n", status.index, AUTHENTICATED, {}),
    (
        "DELETE",
        _VM,
        "pn",
        destroy.destroy,
        ("/vms/{vmid}", "VM.Allocate"),
        {**SKIP, "purge": BOOL, "destroy-unreferenced-disks": BOOL},
    ),
    (
        "GET",
        f"{_VM}/config",
        "n",
        status.config,
        _AUDIT,
        {"current": BOOL, "snapshot": Param(checks.config_id)},
    ),
    ("PUT", f"{_VM}/config", "pnv", config.put, _CONFIG, CONFIGURE),
    (
        "POST",
        f"{_VM}/config",
        "pnv",
        config.post,
        _CONFIG,
        {
            **CONFIGURE,
            "import-working-storage": Param(storage_id),
            "background_delay": Param(integer(1, 30), kind="integer"),
        },
    ),
    (
        "PUT",
        f"{_VM}/unlink",
        "pn",
        config.unlink,
        ("/vms/{vmid}", "VM.Config.Disk"),
        {"idlist": Param(None, True), "force": BOOL},
    ),
    (
        "PUT",
        f"{_VM}/sendkey",
        "pn",
        power.sendkey,
        ("/vms/{vmid}", "VM.Console"),
        {**SKIP, "key": Param(None, True)},
    ),
    ("GET", f"{_VM}/rrddata", "p", statistics.of_vm, _AUDIT, RRD),
    ("GET", f"{_ST}/rrddata", "pn", statistics.of_storage, _READ, RRD),
    ("GET", "/nodes/{node}/rrddata", "p", statistics.of_node, _NODE_AUDIT, RRD),
    ("GET", f"{_VM}/pending", "n", status.pending, _AUDIT, {}),
    ("GET", f"{_VM}/cloudinit", "n", status.cloudinit, _AUDIT, {}),
    (
        "PUT",
        f"{_VM}/cloudinit",
        "pn",
        status.regenerate_cloudinit,
        ("/vms/{vmid}", "VM.Config.Cloudinit"),
        {},
    ),
    ("GET", f"{_VM}/status", "n", status.status_index, AUTHENTICATED, {}),
    ("GET", f"{_VM}/status/current", "pn", status.current, _AUDIT, {}),
    ("POST", f"{_VM}/status/start", "pn", power.start, _POWER, START),
    ("POST", f"{_VM}/status/stop", "pn", power.stop, _POWER, STOP),
    ("POST", f"{_VM}/status/shutdown", "pn", power.shutdown, _POWER, SHUTDOWN),
    ("POST", f"{_VM}/status/reboot", "pn", power.reboot, _POWER, {"timeout": NUMBER}),
    ("POST", f"{_VM}/status/reset", "pn", power.reset, _POWER, SKIP),
    (
        "POST",
        f"{_VM}/status/suspend",
        "pn",
        power.suspend,
        _POWER,
        {**SKIP, "todisk": BOOL, "statestorage": Param(storage_id)},
    ),
    ("POST", f"{_VM}/status/resume", "pn", power.resume, _POWER, {**SKIP, "nocheck": BOOL}),
    (
        "PUT",
        f"{_VM}/resize",
        "pn",
        resize.resize,
        ("/vms/{vmid}", "VM.Config.Disk"),
        {
            **SKIP,
            "digest": Param(checks.text(40)),
            "size": Param(SIZE, True),
            "disk": Param(pattern(r"^(ide|sata|scsi|virtio)\d+$|^efidisk0$|^tpmstate0$"), True),
        },
    ),
    ("POST", f"{_VM}/clone", "pn", clone.clone, ("/vms/{vmid}", "VM.Clone"), CLONE),
    (
        "POST",
        f"{_VM}/template",
        "pn",
        resize.template,
        ("/vms/{vmid}", "VM.Allocate"),
        {"disk": TEXT},
    ),
    (
        "GET",
        f"{_VM}/feature",
        "pn",
        resize.feature,
        _AUDIT,
        {"feature": Param(one_of("snapshot", "clone", "copy"), True), "snapname": TEXT},
    ),
    (
        "GET",
        f"{_VM}/migrate",
        "pn",
        migrate.preconditions,
        ("/vms/{vmid}", "VM.Migrate"),
        {"target": Param(checks.node_name)},
    ),
    ("POST", f"{_VM}/migrate", "pn", migrate.migrate, ("/vms/{vmid}", "VM.Migrate"), MIGRATE),
    ("GET", f"{_VM}/snapshot", "pn", snapshot.snapshots, _AUDIT, {}),
    (
        "POST",
        f"{_VM}/snapshot",
        "pn",
        snapshot.create,
        _SNAPSHOT,
        {"snapname": NAMED["snapname"], "description": TEXT, "vmstate": BOOL},
    ),
    ("GET", f"{_VM}/snapshot/{{snapname}}", "", snapshot.index, AUTHENTICATED, {}),
    ("DELETE", f"{_VM}/snapshot/{{snapname}}", "pn", snapshot.delete, _SNAPSHOT, {"force": BOOL}),
    (
        "POST",
        f"{_VM}/snapshot/{{snapname}}/rollback",
        "pn",
        snapshot.rollback,
        ("/vms/{vmid}", "VM.Snapshot", "VM.Snapshot.Rollback"),
        {"start": BOOL},
    ),
    (
        "PUT",
        f"{_VM}/snapshot/{{snapname}}/config",
        "pn",
        snapshot.change,
        _SNAPSHOT,
        {"description": TEXT},
    ),
    (
        "GET",
        f"{_VM}/snapshot/{{snapname}}/config",
        "n",
        snapshot.config,
        ("/vms/{vmid}", "VM.Snapshot", "VM.Snapshot.Rollback", "VM.Audit"),
        {},
    ),
    ("POST", f"{_VM}/agent/ping", "pn", agent.ping, _AGENT, {}),
    ("GET", f"{_VM}/agent/network-get-interfaces", "pn", agent.interfaces, _AGENT, {}),
    ("GET", f"{_VM}/agent/get-host-name", "pn", agent.host_name, _AGENT, {}),
)


def _route(row: Row) -> Route:
    method, path, flags, handler, permission, own = row
    named = {part[1:-1]: NAMED[part[1:-1]] for part in path.split("/") if part.startswith("{")}
    schema = _schema({**named, **own}, vm="v" in flags)
    return Route(
        method,
        path,
        handler,
        schema,
        permission,
        protected="p" in flags,
        proxied="n" in flags,
        token="t" not in flags,
        modern="9" in flags,
    )


ROUTES: tuple[Route, ...] = tuple(
    _route(row)
    for row in (
        *_ROWS,
        *sdn_routes.ROWS,
        *firewall_routes.ROWS,
        *desk_routes.ROWS,
        *guest_routes.ROWS,
    )
)


class Router:
    """Finds the route of a request, by a trie of path parts; the last one may hold slashes."""

    def __init__(self, routes: tuple[Route, ...]) -> None:
        self._root: dict[str, Any] = {}
        for route in routes:
            here = self._root
            for part in route.path.strip("/").split("/"):
                here = here.setdefault("{}" if part.startswith("{") else part, {})
            here.setdefault("methods", {})[route.method] = route

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]] | None:
        """Return the route and its path parameters, or None."""
        parts = path.strip("/").split("/")
        if len(parts) > 6 and parts[0] == "nodes" and parts[2] == "storage":
            parts = [*parts[:5], "/".join(parts[5:])]
        if "ipset" in parts[2:]:
            last = parts.index("ipset") + 2
            parts = [*parts[:last], *(["/".join(parts[last:])] if parts[last:] else [])]
        here: dict[str, Any] = self._root
        values: list[str] = []
        for part in parts:
            if part in here and part != "methods":
                here = here[part]
            elif "{}" in here:
                here = here["{}"]
                values.append(part)
            else:
                return None
        route: Route | None = here.get("methods", {}).get(method)
        if route is None:
            return None
        names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
        return route, dict(zip(names, values, strict=True))
