"""One request of each operation of the compute API, and a cloud in which it is carried out.

A request that an operation needs to change something is made once per version and cloud. `Ask`
says what differs from the common values of `PARAMS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common import clock, ids
from common.messages.consoles import token_hash
from common.messages.guests import Diagnostics, DiskUse, NicUse
from common.messages.measurements import Measured, Period
from common.messages.scheduling import Decision
from common.resources.states import PowerState
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import (
    IMAGE,
    NETWORK,
    ComputeApi,
    a_flavor,
    a_full_server,
    a_host,
    a_keypair,
    a_reservation,
    a_service,
    uuid_of,
)
from tests.fixtures.listings import (
    NOW,
    Row,
    a_network,
    a_port,
    a_security_group,
    a_subnet,
    an_image,
)
from tests.fixtures.volumes import SHARED_STORAGE, a_volume, an_attachment, volume_id
from tests.functional.api_compute.test_ledger import an_event, an_operation
from tests.functional.api_compute.test_migrations import a_migration

_COMPUTE = "nova-compute"
PROJECT, USER = "0" * 31 + "1", "0" * 31 + "2"
ADMIN = auth.token(USER, PROJECT, "admin", "manager", "member", "reader")
MEMBER = auth.token(USER, PROJECT)
_SERVICE = auth.token(USER, PROJECT, "admin", "manager", "member", "reader", "service")
REQUEST = f"req-{uuid_of(91)}"
SNAPSHOT, GROUP, RULE = (ids.named("of the answers", str(number)) for number in range(3))
TOKEN = "a-token-of-a-console"
SERVER_GROUP = ids.named("of the answers", "group")
#: volumes: at rest with a snapshot, of a server, the root of one, at rest
FREE, HAD, ROOT, EMPTY, SPARE = range(20, 25)


def _mine(row: Row, **changes: Any) -> Row:
    """Return a row of the project that asks."""
    table, values = row
    own = {"project_id": PROJECT, "user_id": USER}
    return table, {**values, **{k: v for k, v in own.items() if k in table.c}, **changes}


def _server(number: int, **changes: Any) -> Row:
    values = {"host": "pve2", "node": "pve2", "meta": {"a": "b"}, "tags": ["tag"]}
    return _mine(a_full_server(number, **{**values, **changes}))


def _group_of_servers() -> Row:
    values = {"uuid": SERVER_GROUP, "name": "group", "policy": "anti-affinity", "rules": {}}
    return _mine((schema.server_groups, {**values, "created_at": NOW}))


def rows() -> Sequence[Row]:
    """Return what there is in the cloud besides the standard rows."""
    facts = {"storages": [SHARED_STORAGE], "host": "pve2"}
    group, rule = a_security_group(PROJECT)
    ingress = {"direction": "ingress", "protocol": "tcp", "port_range_min": 1}
    ingress |= {"port_range_max": 2, "remote_ip_prefix": "10.0.0.0/8", "meaning": "ingress"}
    fault = {"server_uuid": uuid_of(3), "operation_id": 1, "request_id": REQUEST, "attempt": 1}
    fault |= {"code": 500, "category": "no_valid_host", "message": "No host.", "log_tail": []}
    fault |= {"cleaned": [], "left": [], "created_at": NOW}
    aggregate = {"meta": {"a": "b"}, "created_at": NOW}
    open_group = {"id": ids.named("of the answers", "open"), "name": "open", "default_of": None}
    console = {"token_hash": token_hash(TOKEN), "server_uuid": uuid_of(1), "host": "pve2"}
    console |= {"console_type": "novnc", "port": 6080, "expires_at": clock.after(3600)}
    return (
        _server(1),
        _server(2, vm_state="resized", task_state=None),
        _server(3, vm_state="error", locked_by="owner"),
        _server(4, task_state="migrating"),
        a_service("pve2"),
        a_service("conductor-1", "nova-conductor"),
        a_service("gone", last_seen_at=NOW),
        a_host("pve2", facts=facts),
        a_flavor("private", is_public=False),
        a_flavor("m1.large", memory_mib=4096, disk_gib=20, vcpus=2),
        a_keypair("mine", USER),
        _mine(an_image("own", locations={}, visibility="private", properties={"a": "b"})),
        a_network("vmbr0"),
        a_network("vmbr1"),
        a_subnet("vmbr0"),
        a_subnet("vmbr1", "10.21.0.0/24"),
        _mine(a_port(1, tag="front")),
        (group[0], group[1]),
        (rule[0], {**rule[1], **ingress, "id": RULE}),
        (group[0], {**group[1], "id": GROUP, "name": "web", "default_of": None}),
        _mine(a_volume(FREE)),
        _mine(a_volume(EMPTY)),
        _mine(a_volume(SPARE)),
        _mine(a_volume(HAD, status="in-use")),
        _mine(a_volume(ROOT, status="in-use")),
        _mine(an_attachment(HAD, slot=1, tag="data")),
        _mine(an_attachment(ROOT, 2, slot=0)),
        _mine(
            (
                schema.volume_snapshots,
                {
                    **{"id": SNAPSHOT, "volume_id": volume_id(FREE), "name": "snap"},
                    **{"status": "available", "size_gib": 1, "meta": {}, "created_at": NOW},
                },
            )
        ),
        _mine(an_operation(1, REQUEST)),
        _mine(an_operation(2, f"req-{uuid_of(92)}", action="reboot", state="failed")),
        an_event("compute_create_vm", 1, result="Error", upid="UPID:pve1:1"),
        _mine(a_migration(1, 2, dest_host="pve2")),
        _mine(a_migration(3)),
        _mine(a_migration(4, 4, type="live-migration", status="running", memory_total=100)),
        _group_of_servers(),
        (schema.faults, fault),
        (schema.aggregates, {"id": 1, "uuid": ids.new_uuid(), "name": "rack", **aggregate}),
        (schema.aggregates, {"id": 2, "uuid": ids.new_uuid(), "name": "empty", **aggregate}),
        (schema.aggregate_hosts, {"aggregate_id": 1, "host": "pve1"}),
        (schema.console_tokens, console),
        a_reservation(1),
        (schema.vmid_bands, {"cluster": "c1", "low": 3000, "high": 3999, "next": 3000}),
        (group[0], {**group[1], **open_group}),
    )


def a_cloud(api: ComputeApi) -> ComputeApi:
    """Return the API with all that requests need, and agents that answer."""
    api.add(*rows())
    agents = api.conductor.agents
    agents.diagnose.return_value = Diagnostics(
        PowerState.RUNNING,
        uptime_seconds=60,
        vcpus=2,
        cpu_percent=50,
        memory_mib=2048,
        memory_used_mib=512,
        config_drive=True,
        disks=(DiskUse("scsi0", 1, 2, 3, 4, 0),),
        nics=(NicUse("tap100i0", "fa:16:3e:00:00:01", 220, 656),),
    )
    agents.measure.return_value = Measured(
        Period.HOUR, 60, NOW, (1_796_000_000, 1_796_000_060), {"cpu": (None, 12.5)}
    )
    agents.read_console_log.return_value = "one\r\ntwo"
    agents.set_password.return_value = None
    agents.find_ha_service.return_value = None
    agents.steer_migration.return_value = None
    decision = [Decision(uuid_of(1), "pve2", "uuid-pve2")]
    api.conductor.scheduler.preview.return_value = decision
    return api


Body = Any | Callable[[tuple[int, ...]], Any]


@dataclass(frozen=True)
class Ask:
    """A request: its body (of the version), its path's parameters, the state of its server."""

    body: Body = None
    query: str = ""
    params: Mapping[str, str | tuple[str, str, str]] = field(default_factory=dict)
    """A tuple: before a version, the version, and since then."""
    server: Mapping[str, Any] = field(default_factory=dict)
    """Columns of server 1 that it needs."""
    since: tuple[int, int] = (2, 1)
    """The first version at which it is not refused."""
    token: str = ADMIN

    def params_at(self, version: tuple[int, ...]) -> dict[str, str]:
        """Return its path's parameters."""
        named = {**PARAMS, **self.params}
        return {
            name: value
            if isinstance(value, str)
            else value[2 if version >= tuple(map(int, value[1].split("."))) else 0]
            for name, value in named.items()
        }

    def body_at(self, version: tuple[int, ...]) -> Any:
        """Return its body."""
        return self.body(version) if callable(self.body) else self.body


PARAMS: Mapping[str, str | tuple[str, str, str]] = {
    "server_id": uuid_of(1),
    "key": "a",
    "tag": "tag",
    "request_id": REQUEST,
    "port_id": ids.named("port", "1"),
    "volume_id": volume_id(HAD),
    "snapshot_id": SNAPSHOT,
    "migration_id": "3",
    "flavor_id": "m1.small",
    "name": "mine",
    "group_id": SERVER_GROUP,
    "hypervisor_id": ("1", "2.53", ids.named("host", "pve2")),
    "service_id": ("disable", "2.53", ids.named("service", f"{_COMPUTE}/pve2")),
    "aggregate_id": "1",
    "project_id": PROJECT,
    "class_name": "default",
    "before": "2026-02-01 00:00:00",
    "host": "pve2",
    "alias": "os-keypairs",
    "image": ids.named("image", "own"),
    "group": GROUP,
    "rule": RULE,
    "network": "vmbr0",
    "token": TOKEN,
}


def _created(version: tuple[int, ...]) -> Any:
    networks: Any = [{"uuid": NETWORK}]
    return {
        "server": {"name": "new", "imageRef": IMAGE, "flavorRef": "m1.small", "networks": networks}
    }


def _service(version: tuple[int, ...]) -> Any:
    return {"status": "disabled"} if version >= (2, 53) else {"host": "pve2", "binary": _COMPUTE}


def _key_pair(version: tuple[int, ...]) -> Any:
    kind = {"type": "ssh"} if version >= (2, 2) else {}
    return {"keypair": {"name": "new", "public_key": _KEY, **kind}}


def _policy(version: tuple[int, ...]) -> Any:
    if version >= (2, 64):
        rules = {"max_server_per_host": 2}
        return {"server_group": {"name": "new", "policy": "anti-affinity", "rules": rules}}
    return {"server_group": {"name": "new", "policies": ["anti-affinity"]}}


def _live(version: tuple[int, ...]) -> Any:
    asked: dict[str, Any] = {"host": None, "block_migration": "auto"}
    if version < (2, 25):
        asked |= {"block_migration": False, "disk_over_commit": False}
    return {"os-migrateLive": asked}


def _console(name: str, kind: str) -> Ask:
    return Ask({name: {"type": kind}})


def _of(state: str, **more: Any) -> Mapping[str, Any]:
    return {"vm_state": state, **more}


_KEY = (
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFZKRHrFHOZ5Dxp8v2YkTCKqWPZL3AyHqMU5lBEhRzVq someone@here"
)
_ACTION = "POST /servers/{}/action"
_STOPPED = {"power_state": 4, **_of("stopped")}
_META = {"metadata": {"a": "c"}}
_KEY_OF_NETWORK = {"key": NETWORK}
_MOVING = {"server_id": uuid_of(4)}

#: the actions: name → request
ACTIONS: Mapping[str, Ask] = {
    "os-start": Ask({"os-start": None}, server=_STOPPED),
    "os-stop": Ask({"os-stop": None}),
    "reboot": Ask({"reboot": {"type": "HARD"}}),
    "pause": Ask({"pause": None}),
    "unpause": Ask({"unpause": None}, server=_of("paused")),
    "suspend": Ask({"suspend": None}),
    "resume": Ask({"resume": None}, server=_of("suspended")),
    "resize": Ask({"resize": {"flavorRef": "m1.large"}}),
    "os-migrateLive": Ask(_live),
    "migrate": Ask({"migrate": None}),
    "confirmResize": Ask({"confirmResize": None}, params={"server_id": uuid_of(2)}),
    "revertResize": Ask({"revertResize": None}, params={"server_id": uuid_of(2)}),
    "changePassword": Ask({"changePassword": {"adminPass": "secret"}}),
    "addSecurityGroup": Ask({"addSecurityGroup": {"name": "web"}}),
    "addFixedIp": Ask({"addFixedIp": {"networkId": ids.named("network", "vmbr1")}}),
    "removeSecurityGroup": Ask({"removeSecurityGroup": {"name": "web"}}),
    "removeFixedIp": Ask({"removeFixedIp": {"address": "10.20.0.1"}}),
    "rebuild": Ask({"rebuild": {"imageRef": IMAGE}}),
    "shelve": Ask({"shelve": None}),
    "shelveOffload": Ask({"shelveOffload": None}, server=_of("shelved")),
    "unshelve": Ask({"unshelve": None}, server=_of("shelved_offloaded")),
    "createImage": Ask({"createImage": {"name": "new"}}),
    "createBackup": Ask({"createBackup": {"name": "new", "backup_type": "daily", "rotation": 1}}),
    "rescue": Ask({"rescue": None}),
    "unrescue": Ask({"unrescue": None}, server=_of("rescued")),
    "lock": Ask({"lock": None}),
    "unlock": Ask({"unlock": None}, server={"locked_by": "owner"}),
    "forceDelete": Ask({"forceDelete": None}),
    "restore": Ask({"restore": None}, server=_of("soft-delete")),
    "os-resetState": Ask({"os-resetState": {"state": "active"}}, server=_of("error")),
    "os-getVNCConsole": _console("os-getVNCConsole", "novnc"),
    "os-getSerialConsole": _console("os-getSerialConsole", "serial"),
    "os-getConsoleOutput": Ask({"os-getConsoleOutput": {}}),
}

REQUESTS: Mapping[str, Ask] = {
    **{f"{_ACTION} {name}": ask for name, ask in ACTIONS.items()},
    "POST /servers": Ask(_created),
    "PUT /servers/{}": Ask({"server": {"name": "other"}}),
    "POST /servers/{}/metadata": Ask(_META),
    "PUT /servers/{}/metadata": Ask(_META),
    "PUT /servers/{}/metadata/{}": Ask({"meta": {"a": "d"}}),
    "PUT /servers/{}/tags": Ask({"tags": ["tag", "one"]}),
    "PUT /servers/{}/tags/{}": Ask(params={"tag": "new"}),
    "GET /servers/{}/ips/{}": Ask(),
    "POST /servers/{}/os-interface": Ask(
        {"interfaceAttachment": {"net_id": ids.named("network", "vmbr1")}}
    ),
    "POST /servers/{}/os-volume_attachments": Ask(
        {"volumeAttachment": {"volumeId": volume_id(FREE)}}
    ),
    "GET /servers/{}/migrations": Ask(params=_MOVING),
    "GET /servers/{}/migrations/{}": Ask(params=_MOVING),
    "DELETE /servers/{}/migrations/{}": Ask(params=_MOVING),
    "POST /servers/{}/migrations/{}/action force_complete": Ask(
        {"force_complete": None}, params=_MOVING
    ),
    "GET /os-networks/{}": Ask(params=_KEY_OF_NETWORK),
    "GET /os-tenant-networks/{}": Ask(params=_KEY_OF_NETWORK),
    "POST /servers/{}/remote-consoles": Ask(
        {"remote_console": {"protocol": "vnc", "type": "novnc"}}
    ),
    "POST /flavors": Ask({"flavor": {"name": "new", "ram": 512, "vcpus": 1, "disk": 1}}),
    "PUT /flavors/{}": Ask({"flavor": {"description": "x"}}),
    "POST /flavors/{}/action addTenantAccess": Ask(
        {"addTenantAccess": {"tenant": PROJECT}}, params={"flavor_id": "private"}
    ),
    "POST /flavors/{}/action removeTenantAccess": Ask(
        {"removeTenantAccess": {"tenant": PROJECT}}, params={"flavor_id": "private"}
    ),
    "GET /flavors/{}/os-flavor-access": Ask(params={"flavor_id": "private"}),
    "DELETE /flavors/{}": Ask(params={"flavor_id": "m1.large"}),
    "POST /flavors/{}/os-extra_specs": Ask({"extra_specs": {"hw:cpu_policy": "shared"}}),
    "GET /flavors/{}/os-extra_specs/{}": Ask(params={"key": "hw:cpu_policy"}),
    "PUT /flavors/{}/os-extra_specs/{}": Ask(
        {"hw:cpu_policy": "shared"}, params={"key": "hw:cpu_policy"}
    ),
    "DELETE /flavors/{}/os-extra_specs/{}": Ask(params={"key": "hw:cpu_policy"}),
    "POST /os-keypairs": Ask(_key_pair),
    "POST /os-server-groups": Ask(_policy),
    "PUT /os-services/{}": Ask(_service),
    "DELETE /os-services/{}": Ask(
        params={"service_id": ("4", "2.53", ids.named("service", f"{_COMPUTE}/gone"))}
    ),
    "DELETE /os-aggregates/{}": Ask(params={"aggregate_id": "2"}),
    "DELETE /os-security-groups/{}": Ask(params={"group": ids.named("of the answers", "open")}),
    "PUT /os-hosts/{}": Ask({"status": "disable"}),
    # Before, it exchanges the volume for another, as only Cinder may ask.
    "PUT /servers/{}/os-volume_attachments/{}": Ask(
        {"volumeAttachment": {"volumeId": volume_id(HAD), "delete_on_termination": True}},
        since=(2, 85),
    ),
    # Before, it answers for consoles of a hypervisor that is not served.
    "GET /os-console-auth-tokens/{}": Ask(since=(2, 31)),
    "GET /os-hypervisors/{}/search": Ask(params={"hypervisor_id": "pve"}),
    "GET /os-hypervisors/{}/servers": Ask(params={"hypervisor_id": "pve"}),
    "POST /os-aggregates": Ask({"aggregate": {"name": "new"}}),
    "PUT /os-aggregates/{}": Ask({"aggregate": {"name": "other"}}),
    "POST /os-aggregates/{}/action add_host": Ask({"add_host": {"host": "pve2"}}),
    "POST /os-aggregates/{}/action remove_host": Ask({"remove_host": {"host": "pve1"}}),
    "POST /os-aggregates/{}/action set_metadata": Ask({"set_metadata": {"metadata": {"a": "b"}}}),
    "POST /os-aggregates/{}/images": Ask({"cache": [{"id": IMAGE}]}),
    "PUT /os-quota-sets/{}": Ask({"quota_set": {"cores": 7}}),
    "PUT /os-quota-class-sets/{}": Ask({"quota_class_set": {"cores": 7}}),
    "POST /os-server-external-events": Ask(
        {"events": [{"name": "network-changed", "server_uuid": uuid_of(1)}]}, token=_SERVICE
    ),
    "POST /images/{}/metadata": Ask(_META),
    "PUT /images/{}/metadata": Ask(_META),
    "PUT /images/{}/metadata/{}": Ask({"meta": {"a": "d"}}),
    "POST /os-security-groups": Ask({"security_group": {"name": "new", "description": "x"}}),
    "PUT /os-security-groups/{}": Ask({"security_group": {"name": "other", "description": "x"}}),
    "POST /os-security-group-rules": Ask(
        {
            "security_group_rule": {
                **{"parent_group_id": GROUP, "ip_protocol": "tcp", "cidr": "10.0.0.0/8"},
                **{"from_port": 5, "to_port": 6},
            }
        }
    ),
    "POST /os-volumes": Ask({"volume": {"size": 1}}),
    "DELETE /os-volumes/{}": Ask(params={"volume_id": volume_id(EMPTY)}),
    "POST /os-snapshots": Ask({"snapshot": {"volume_id": volume_id(SPARE)}}),
}

#: operations that OpenStack has not
OURS = frozenset(
    {
        *(
            f"{_ACTION} {name}"
            for name in ("release", "mark", "hold", "release-hold", "retry", "forget")
        ),
        *("POST /adoptions", "GET /explanations/{}", "POST /schedule", "GET /capacity"),
        "POST /schedule/fit",
        "GET /capacity/total",
        "GET /storages",
        "GET /hosts/{}/tasks",
        *("GET /evacuations/{}", "GET /rebalance", "GET /drains/{}", "GET /vmids", "GET /metrics"),
        *("GET /queues", "GET /waiting", "GET /waiting/hosts", "GET /operations"),
        *("GET /servers/{}/metrics", "GET /hosts/{}/metrics"),
        *(
            "GET /bulk-migrations",
            "POST /bulk-migrations",
            "GET /bulk-migrations/{}",
            "GET /queues",
        ),
        *(f"POST /bulk-migrations/{{}}/action {name}" for name in ("pause", "resume", "cancel")),
        *(
            "GET /audits",
            "POST /audits",
            "POST /restores",
            "GET /audits/{}",
            "GET /audit/findings",
        ),
        *("GET /audit/findings/{}", "POST /audit/findings/{}/action heal"),
    }
)
#: operations that are refused here, or that answer with nothing but an error
REFUSED = frozenset(
    {
        *(
            f"{_ACTION} {name}"
            for name in (
                *("os-getRDPConsole", "os-getSPICEConsole", "trigger_crash_dump"),
                *("resetNetwork", "injectNetworkInfo", "evacuate"),
            )
        ),
        "POST /os-volumes_boot/{}/action trigger_crash_dump",
        *("GET /os-hosts/{}/startup", "GET /os-hosts/{}/shutdown", "GET /os-hosts/{}/reboot"),
        *("POST /os-floating-ips", "GET /os-floating-ips/{}", "DELETE /os-floating-ips/{}"),
    }
)
#: places where Nova's own answers are not as its schemas say: names of hosts, which are no UUIDs
NOVA_S_MISTAKES = ("hosts_not_run/",)
