"""The doctor finds each planted misconfiguration of a cluster, and nothing in a good one."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import re
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import requests

from common.errors import ConfigurationError
from common.findings import Finding, Level, exit_code
from compute import drivers
from compute.doctor import examine
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox.api import client, privileges
from launcher.embedded.prepare import count_hosts
from simulator.server import Options, Simulator
from simulator.state.access import Grant
from simulator.state.cluster import Cluster
from simulator.state.ha_config import HaResource
from simulator.state.model import Vm
from tests.fixtures.root_shell import RootShell
from tests.functional.compute.conftest import configuration

pytestmark = pytest.mark.sampled(2)

#: everything that a token may ever be asked for
ALL = (*privileges.needs((), (), ()), privileges.ANY_STORAGE, *privileges.optional("9.2"))
BAND = 100_000
#: an option of a line, and its value up to the next one
#: what only the reader of a line knows
_PLACE = re.compile(r"<[\w ]+>")
_OPTION = re.compile(r"(\w+) = (.*?)(?=, \w+ = |$)")
IMAGE = "0e0e0e0e-0000-4000-8000-000000000001"
#: what is planted in tests/unit/compute/doctor, or tests/functional/compute/test_preflight.py
ELSEWHERE = {"certificate_ends", "cluster_unusable", "ha_no_master", "vnet_unready"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulator]:
    folder = tmp_path_factory.mktemp("doctor") / "state"
    options = Options(folder, clusters=2, nodes=2, tls=True, node_endpoints=True, speed=200)
    options = replace(options, firewall=True)
    with Simulator(options) as simulator:
        for cluster in simulator.clusters:
            with cluster.turn():
                _grant_all(cluster)
        yield simulator


def _grant_all(cluster: Cluster) -> None:
    for name in [one for one in cluster.access.roles if one.startswith("Micronova")]:
        del cluster.access.roles[name]
    cluster.access.roles["Everything"] = frozenset(one for need in ALL for one in need.privileges)
    # What is granted below the root would take its place.
    cluster.access.grants[:] = [
        Grant("/", "micronova@pve", "user", "Everything"),
        Grant("/", "micronova@pve!agent", "token", "Everything"),
    ]
    cluster.options["next-id"] = f"lower=100,upper={BAND}"
    cluster.save_access()


@dataclass
class Site:
    """The first cluster, and the configuration of its agents."""

    simulator: Simulator
    folder: Path
    options: dict[str, str] = field(default_factory=dict)
    networks: dict[str, str] = field(default_factory=dict)
    other: dict[str, str] | None = None
    """Options of a second cluster; None: there is none."""
    _printed: str = ""
    """What the lines that were carried out have printed."""

    @property
    def cluster(self) -> Cluster:
        return self.simulator.cluster()

    def url(self, number: int = 0) -> str:
        return str(self.simulator.endpoints[number]["url"])

    def text(self) -> str:
        names = ["c1"] + (["c2"] if self.other is not None else [])
        networks = [f"{name} = {value}" for name, value in self.networks.items()]
        return "\n".join(
            [
                *("[proxmox]", f"clusters = {','.join(names)}", *self._group("c1", 0)),
                *(self._group("c2", 1) if self.other is not None else ()),
                *("[networks]", *networks),
            ]
        )

    def _group(self, name: str, number: int) -> list[str]:
        token, file = self.simulator.token, self.folder / f"token-{name}"
        file.write_text(f"{token['tokenid']}={token['secret']}")
        file.chmod(0o600)
        options = {
            "endpoints": self.url(number),
            "token_file": str(file),
            "ca_file": str(self.simulator.options.state_dir / "ca.pem"),
            **(self.options if number == 0 else self.other or {}),
        }
        return [f"[proxmox:{name}]", *(f"{one} = {value}" for one, value in options.items())]

    def follow(self, one: Finding) -> None:
        """Do what a finding's lines say: as root on its node, or in the configuration."""
        state = self.simulator.options.state_dir
        root = RootShell(
            self.url(), state / "ca.pem", state / "root-password", self.folder / "bin"
        )
        node = one.where.removeprefix("Node ") if one.where.startswith("Node ") else ""
        for line in one.lines:
            if line.startswith("#"):
                self._configure(line)
            else:
                self._printed += root.run(_PLACE.sub("/srv/there", line), node)

    def _configure(self, line: str) -> None:
        """Change the options that a line names: `# [group] name = value, name = value`."""
        group, _, text = line.removeprefix("# [").partition("] ")
        options = self.networks if group == "networks" else self.options
        if group == "proxmox:c2":
            assert self.other is not None
            options = self.other
        for name, value in _OPTION.findall(text):
            options[name] = self._known(value)

    def _known(self, value: str) -> str:
        """Return what only the reader knows where a value says `<…>`."""
        if value == "<its copy here>":
            return str(self.simulator.options.state_dir / "ca.pem")
        if value.startswith("<a file with "):
            [secret] = re.findall(r'"value": "([^"]+)"', self._printed)
            file = self.folder / "token-new"
            file.write_text(
                value.removeprefix("<a file with ").removesuffix(">").replace("…", secret)
            )
            file.chmod(0o600)
            return str(file)
        return value

    def findings(self) -> Mapping[str, Any]:
        found = examine.examine(configuration(self.folder, self.text())).findings
        return {one.code: one for one in found}


@pytest.fixture
def site(running: Simulator, tmp_path: Path) -> Iterator[Site]:
    """All is as it was afterwards."""
    with contextlib.ExitStack() as stack:
        for cluster in running.clusters:
            stack.callback(_restore, cluster, _kept(cluster))
            stack.callback(cluster.faults.clear)
        yield Site(running, tmp_path)


_KEPT = ("nodes", "storages", "options", "vms", "ha", "version", "firewalls")


def _kept(cluster: Cluster) -> Any:
    with cluster.turn():
        access = cluster.access
        return copy.deepcopy(
            (
                {name: getattr(cluster, name) for name in _KEPT},
                (access.grants, access.users, access.roles),
            )
        )


def _restore(cluster: Cluster, kept: Any) -> None:
    with cluster.turn():
        for name, value in kept[0].items():
            setattr(cluster, name, value)
        cluster.access.grants, cluster.access.users, cluster.access.roles = kept[1]
        cluster.access.changed()


def test_nothing_is_wrong_with_a_good_cluster(site: Site) -> None:
    assert site.findings() == {}


# --- what is planted


def _lock(site: Site) -> None:
    vm = Vm(BAND + 1, "pve1", {"name": "stuck", "lock": "create"})
    site.cluster.vms[vm.vmid] = vm


def _band(site: Site) -> None:
    site.options |= {"vmid_low": str(BAND), "vmid_high": str(BAND + 9)}
    for vmid in range(BAND, BAND + 10):
        site.cluster.vms[vmid] = Vm(vmid, "pve1", {"name": f"vm{vmid}"})


def _shown(**values: Any) -> Callable[[Site], None]:
    return lambda site: site.cluster.nodes["pve2"].shown.update(values)


def _bridge(**values: Any) -> Callable[[Site], None]:
    return _shown(interfaces={"vmbr1": values})


def _options(**values: str) -> Callable[[Site], None]:
    return lambda site: site.cluster.options.update(
        {name.replace("_", "-"): value for name, value in values.items()}
    )


def _storage(name: str, **values: Any) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        for one, value in values.items():
            setattr(site.cluster.storages[name], one, value)

    return plant


def _without(*names: str) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        roles = site.cluster.access.roles
        roles["Everything"] = roles["Everything"] - set(names)

    return plant


def _refuse_tags(site: Site) -> None:
    _without("Sys.Modify")(site)
    _options(user_tag_access="user-allow=none")(site)


def _setting(**values: str) -> Callable[[Site], None]:
    return lambda site: site.options.update(values)


def _add_local(site: Site, nodes: list[str]) -> None:
    local = copy.deepcopy(site.cluster.storages["local"])
    local.id, local.nodes = "local2", nodes
    site.cluster.storages["local2"] = local


def _unshared(site: Site) -> None:
    site.cluster.storages["shared"].content = ["iso", "import"]


def _closed(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    site.options["endpoints"] = f"{site.url()},https://127.0.0.1:{port}"


def _all_closed(site: Site) -> None:
    _closed(site)
    site.options["endpoints"] = site.options["endpoints"].partition(",")[2]


def _no_token(site: Site) -> None:
    file = site.folder / "wrong"
    file.write_text("micronova@pve!agent=00000000-0000-0000-0000-000000000000")
    file.chmod(0o600)
    site.options["token_file"] = str(file)


def _ends_soon(site: Site) -> None:
    token = site.cluster.access.users["micronova@pve"].tokens["agent"]
    token.expire = int(time.time()) + 86_400


def _ha(status: str) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        site.cluster.vms[900] = Vm(900, "pve1", {"name": "ha"})
        site.cluster.ha.resources["vm:900"] = HaResource("vm:900", "vm", {"state": status})

    return plant


def _hides(site: Site) -> None:
    site.cluster.access.roles["Nothing"] = frozenset({"Sys.Audit"})
    site.cluster.access.grants.append(Grant("/storage/secret", "micronova@pve", "user", "Nothing"))


def _tags(site: Site) -> None:
    for name, tags in (("pve1", "2-4094"), ("pve2", "10 20")):
        values = {"vmbr1": {"bridge_vlan_aware": 1, "bridge_vids": tags}}
        site.cluster.nodes[name].shown["interfaces"] = values


def _full(site: Site) -> None:
    site.cluster.storages["shared"].capacity = 1 << 30


def _same_names(site: Site) -> None:
    site.options["host_prefix"] = "x"
    assert site.other is not None
    site.other["host_prefix"] = ""
    other = site.simulator.clusters[1]
    node = other.nodes.pop("pve3")
    node.name = "xpve1"
    other.nodes["xpve1"] = node


def _fault(**order: str) -> Callable[[Site], None]:
    return lambda site: site.cluster.faults.add(order) and None


def _with(*names: str) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        roles = site.cluster.access.roles
        roles["Everything"] = roles["Everything"] | set(names)

    return plant


def _root(site: Site) -> None:
    token = site.cluster.access.make_token("root@pam", "agent", privsep=False)
    file = site.folder / "root"
    file.write_text(f"root@pam!agent={token.secret}")
    file.chmod(0o600)
    site.options["token_file"] = str(file)


def _user_ends(site: Site) -> None:
    site.cluster.access.users["micronova@pve"].expire = int(time.time()) + 86_400


def _all_shown(**values: Any) -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        for node in site.cluster.nodes.values():
            node.shown.update(values)

    return plant


def _no_rules(site: Site) -> None:
    site.options["write_affinity_rules"] = "true"
    site.cluster.version = dataclasses.replace(site.cluster.version, version="8.4.1")
    _with("VM.Monitor")(site)


_DISK = f"shared:{BAND}/base-{BAND}-disk-0.qcow2,size=2G"


def _template(description: str, disk: str = "") -> Callable[[Site], None]:
    def plant(site: Site) -> None:
        values = {"name": f"micronova-image-{IMAGE}", "template": "1", "description": description}
        site.cluster.vms[BAND] = Vm(BAND, "pve1", values | ({"scsi0": disk} if disk else {}))

    return plant


def _many(site: Site) -> None:
    for vmid in range(1000, 6001):
        site.cluster.vms[vmid] = Vm(vmid, "pve1", {"name": f"vm{vmid}"})


def _many_resources(site: Site) -> None:
    for vmid in range(1000, 1250):
        values = {"state": "ignored", "comment": "x" * 4000}
        site.cluster.ha.resources[f"vm:{vmid}"] = HaResource(f"vm:{vmid}", "vm", values)


def _dead_manager(site: Site) -> None:
    _ha("started")(site)
    site.cluster.nodes["pve2"].up = False


PLANTED: Mapping[str, tuple[str, Callable[[Site], None]]] = {
    "an endpoint that is closed": ("endpoint_unreachable", _closed),
    "no endpoint": ("cluster_unreachable", _all_closed),
    "a certificate of somebody else": (
        "certificate_untrusted",
        lambda site: site.options.update(ca_file="/etc/ssl/certs/ca-certificates.crt"),
    ),
    "a certificate that nobody checks": ("certificate_unchecked", _setting(insecure="true")),
    "endpoints of two clusters": (
        "endpoints_differ",
        lambda site: site.options.update(endpoints=f"{site.url()},{site.url(1)}"),
    ),
    "a wrong token": ("token_refused", _no_token),
    "a token that ends": ("token_ends", _ends_soon),
    "no right to make VMs": ("token_lacks", _without("VM.Allocate")),
    "no right to see nodes": ("token_lacks", _without("Sys.Audit")),
    "no right to storages": ("token_lacks", _without("Datastore.AllocateSpace")),
    "no right to bridges": ("token_lacks", _without("SDN.Use")),
    "no right to migrate": ("privilege_missing", _without("VM.Migrate")),
    "no right to consoles": ("privilege_missing", _without("VM.Console")),
    "no right to steer migrations": ("privilege_optional", _without("Sys.Modify")),
    "no right to agents": ("privilege_optional", _without("VM.GuestAgent.Unrestricted")),
    "a storage that the token can't see": ("token_hides", _hides),
    "a token of root": ("token_is_root", _root),
    "a token that may do anything": ("token_mighty", _with("Permissions.Modify")),
    "a user who ends": ("user_ends", _user_ends),
    "a node in maintenance": (
        "node_in_maintenance",
        _fault(action="maintenance", node="pve2"),
    ),
    "a node that others don't reach": (
        "node_silent",
        lambda site: setattr(site.cluster.nodes["pve2"], "proxy", "down"),
    ),
    "a release without updates": ("version_unsupported", _all_shown(version="8.4.1")),
    "a daemon that doesn't run": ("daemon_down", _shown(services={"pvestatd": "dead"})),
    "a node without time synchronization": ("clock_unkept", _shown(services={"chrony": "dead"})),
    "a storage that is away": (
        "storage_inactive",
        _fault(action="storage-offline", storage="local", node="pve2"),
    ),
    "config drives on local storages": ("iso_not_shared", _setting(iso_storage="local")),
    "a storage without snapshots": ("storage_lacks_features", _storage("shared", type="lvm")),
    "rules for a release without": ("rules_unknown", _no_rules),
    "a template without a mark": ("template_unmarked", _template("a template of mine", _DISK)),
    "a template without its disk": (
        "template_broken",
        _template(f"micronova: template={IMAGE}", _DISK),
    ),
    "too many guests": ("guests_many", _many),
    "a file that is nearly full": ("pmxcfs_file_large", _many_resources),
    "an HA manager that is dead": ("ha_node_dead", _dead_manager),
    "a node that is off": (
        "node_offline",
        lambda site: setattr(site.cluster.nodes["pve2"], "up", False),
    ),
    "no quorum": ("no_quorum", lambda site: setattr(site.cluster.nodes["pve2"], "up", False)),
    "a host that nobody has": ("unknown_host", _setting(hosts="pve1,pve7")),
    "no host that is on": ("none_online", _setting(hosts="pve7")),
    "an old release": ("version_old", _shown(version="8.1.4")),
    "two releases": ("versions_differ", _shown(version="9.1.2")),
    "a clock that is ahead": ("clock_off", _shown(clock=90)),
    "a clock that is behind": ("clock_off", _shown(clock=-3600)),
    "a processor that lacks": ("processor_lacks", _shown(flags="fpu sse2 svm")),
    "processors that differ": (
        "processors_differ",
        lambda site: (_setting(cpu_type="host")(site), _shown(model="Xeon")(site))[0],
    ),
    "a named storage that isn't there": ("content_missing", _setting(vm_storage="nope")),
    "no place for config drives": (
        "content_missing",
        lambda site: (
            [
                setattr(one, "content", ["images", "import"])
                for one in site.cluster.storages.values()
            ]
            and None
        ),
    ),
    "no place for images": (
        "content_missing",
        lambda site: (
            [setattr(one, "content", ["images", "iso"]) for one in site.cluster.storages.values()]
            and None
        ),
    ),
    "machine types that can't be read": (
        "fact_unread",
        _fault(
            action="fail", method="GET", path="/capabilities/qemu/machines$", status=500, text="no"
        ),
    ),
    "services that can't be read": (
        "fact_unread",
        _fault(action="fail", method="GET", path="/pve2/services$", status=500, text="no"),
    ),
    "a full storage": ("storage_full", _full),
    "a shared storage on one node": ("storage_not_everywhere", _storage("shared", nodes=["pve1"])),
    "a local storage on one node": ("storage_differs", lambda site: _add_local(site, ["pve1"])),
    "no shared storage for disks": ("storage_not_shared", _unshared),
    "a bridge on one node": (
        "bridges_differ",
        lambda site: site.cluster.nodes["pve2"].bridges.append("vmbr9"),
    ),
    "a bridge that isn't applied": ("bridge_down", _bridge(active=0)),
    "VLANs that differ": ("vlans_differ", _bridge(bridge_vlan_aware=1)),
    "tags that differ": ("vlans_differ", _tags),
    "an MTU that differs": ("mtu_differs", _bridge(mtu="9000")),
    "migrations as plain text": ("migration_insecure", _options(migration="type=insecure")),
    "a migration network that nobody has": (
        "migration_network",
        _options(migration="type=secure,network=192.168.7.0/24"),
    ),
    "a firewall that is off": ("firewall_off", lambda site: site.cluster.firewalls.clear()),
    "tags that nobody may set": ("tags_refused", _refuse_tags),
    "HA that chooses nodes": ("crs_moves", _options(crs="ha=static,ha-rebalance-on-start=1")),
    "an HA resource in error": ("ha_error", _ha("error")),
    "ids for people in the band": (
        "ids_overlap",
        _options(next_id=f"lower={BAND - 50},upper=1000000"),
    ),
    "a band that is used up": ("band_nearly_used", _band),
    "a lock that is stuck": ("lock_stuck", _lock),
    "bands of clusters that overlap": (
        "bands_overlap",
        lambda site: setattr(site, "other", {"host_prefix": "b-"}),
    ),
    "hosts of one name": (
        "hosts_named_alike",
        lambda site: (
            setattr(site, "other", {"vmid_low": "200000", "vmid_high": "299999"}),
            _same_names(site),
        )[0],
    ),
}


#: what comes along with some of them, by what they are
COMES_ALONG = {
    "an HA manager that is dead": {"no_quorum", "node_offline"},
    "tags that nobody may set": {"privilege_optional"},
    "rules for a release without": {
        "privilege_missing",
        "version_unsupported",
        "fact_unread",
    },
    "a shared storage on one node": {"iso_not_shared"},
    "a node that is off": {"no_quorum"},
    "no quorum": {"node_offline"},
    "an old release": {"versions_differ", "version_unsupported"},
    "no host that is on": {"unknown_host"},
    "no place for images": {"storage_full"},
}


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.parametrize("what", PLANTED)
def test_each_planted_fault_is_found(site: Site, what: str) -> None:
    code, plant = PLANTED[what]
    with site.cluster.turn():
        plant(site)
        site.cluster.access.changed()
    found = site.findings()
    assert code in found, found
    assert found.keys() - {code} <= COMES_ALONG.get(what, set())
    one = found[code]
    assert one.what.endswith((".", ")", "?"))
    assert one.why.endswith(".")
    assert one.where
    assert one.lines
    assert "\n" not in "".join(one.lines)
    assert exit_code(found.values()) >= {Level.BROKEN: 2, Level.WARNING: 1}.get(one.level, 0)


#: findings whose lines only show something, by what decides how to go on
LOOKS: Mapping[str, str] = {
    "an endpoint that is closed": "whether the daemon runs, or the address is wrong",
    "no quorum": "which nodes are missing",
    "no host that is on": "which nodes are missing",
    "a node that is off": "which nodes are missing",
    "a storage that is away": "why: a mount, a network, or a disk",
    "a full storage": "what is on it, to be removed or moved",
    "a local storage on one node": "whether the other nodes have such a storage",
    "VLANs that differ": "which of the values is meant",
    "tags that differ": "which of the values is meant",
    "an MTU that differs": "which of the values is meant",
    "machine types that can't be read": "the error itself",
    "services that can't be read": "the error itself",
    "too many guests": "how large it is; other guests need another cluster",
    "a file that is nearly full": "how large it is; what is not needed is to be removed",
    "a template without a mark": "whether it is the image's: else it is somebody's",
}
#: findings whose lines change what no call of Proxmox VE does, and the simulator has not
ELSEWHERE_MENDED: Mapping[str, str] = {
    "no endpoint": "a daemon of the node, which doesn't answer",
    "a node that others don't reach": "a daemon of the node, which doesn't answer",
    "an HA manager that is dead": "the node is off",
    "a node without time synchronization": "a package of Debian's",
    "a clock that is ahead": "the node's clock",
    "a clock that is behind": "the node's clock",
    "a release without updates": "the upgrade of a node",
    "an old release": "the upgrade of a node",
    "two releases": "the upgrade of a node",
}


@pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
@pytest.mark.parametrize("what", [one for one in PLANTED if one not in LOOKS | ELSEWHERE_MENDED])
def test_each_line_mends_its_finding(site: Site, what: str) -> None:
    """The finding is gone once its lines were carried out, and no other one is there for it."""
    code, plant = PLANTED[what]
    with site.cluster.turn():
        plant(site)
        site.cluster.access.changed()
    before = site.findings()
    site.follow(before[code])
    after = site.findings()
    assert code not in after, after[code]
    # What a role had beyond the documented ones is a matter of choice.
    worse = {name for name, one in after.items() if one.level is not Level.NOTE}
    assert worse <= before.keys() - {code}


PRIVILEGES = sorted({one for need in ALL for one in need.privileges})
#: with any of these a token lacks nothing, even without the first
DOES_FOR: Mapping[str, tuple[str, ...]] = {"VM.GuestAgent.Audit": ("VM.GuestAgent.Unrestricted",)}


@pytest.mark.parametrize("privilege", PRIVILEGES)
def test_each_privilege_that_is_missing_is_named_with_its_line(site: Site, privilege: str) -> None:
    """One alone, of all that a token may be asked for: path, privilege, and what grants it."""
    site.options["write_affinity_rules"] = "true"
    with site.cluster.turn():
        site.cluster.access.roles["Everything"] |= {"Sys.Console"}
        _without(privilege, *DOES_FOR.get(privilege, ()))(site)
        site.cluster.access.changed()
    lacks = ("token_lacks", "privilege_missing", "privilege_optional")
    found = [one for code, one in site.findings().items() if code in lacks]
    named = [one for one in found if re.search(rf"(?<![\w.]){privilege}(?!\w|\.\w)", one.what)]
    assert named, found
    for one in named:
        assert any(line.startswith("pveum acl modify /") for line in one.lines)
        assert any(f"{privilege}" in line and "pveum role modify" in line for line in one.lines)
        site.follow(one)
    others = DOES_FOR.get(privilege, ())
    after = {code: one for code, one in site.findings().items() if code in lacks}
    assert not {
        code for code, one in after.items() if not any(name in one.what for name in others)
    }


@pytest.mark.parametrize("what", LOOKS)
def test_each_line_that_shows_something_works(site: Site, what: str) -> None:
    code, plant = PLANTED[what]
    with site.cluster.turn():
        plant(site)
        site.cluster.access.changed()
    one = site.findings()[code]
    site.cluster.faults.clear()  # they are of calls, and their own line asks for them again
    shows = ("pvesh get ", "pvesm list ", "pvesm status", "qm config ")
    site.follow(dataclasses.replace(one, lines=[x for x in one.lines if x.startswith(shows)]))


def test_every_exception_is_planted() -> None:
    assert not LOOKS.keys() & ELSEWHERE_MENDED.keys()
    assert LOOKS.keys() | ELSEWHERE_MENDED.keys() <= PLANTED.keys()


def test_every_finding_of_clusters_is_planted() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs/doctor.md").read_text(encoding="utf-8")
    table = page.partition("## Clusters")[2].partition("## Services")[0]
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", table, re.MULTILINE)
    named = {code for row in rows for code in re.findall(r"`([a-z_]+)`", row)}
    assert named == {code for code, _ in PLANTED.values()} | ELSEWHERE
    assert len(PLANTED) >= 40


def test_the_embedded_cloud_begins_on_what_works_only(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with site.cluster.turn():
        _options(crs="ha=static,ha-rebalance-on-start=1")(site)
    assert count_hosts(configuration(site.folder, site.text())) == 2
    assert "pvesh set /cluster/options --delete crs" in caplog.text
    with site.cluster.turn():
        _shown(version="8.1.4")(site)
    assert count_hosts(configuration(site.folder, site.text())) == 2
    assert "Node pve2: It has Proxmox VE 8.1.4." in caplog.text
    assert "to leave this one out: [proxmox:c1] hosts = pve1" in caplog.text
    with site.cluster.turn():
        _all_shown(version="8.1.4")(site)
    with pytest.raises(ConfigurationError, match=r"Node pve1: It has Proxmox VE 8\.1\.4"):
        count_hosts(configuration(site.folder, site.text()))


#: what nothing of a cluster can be known without
NEEDED = ("cluster/resources", "cluster/status")
REFUSALS = [
    pytest.param({"action": "fail", "status": 403, "text": "Permission check failed"}, id="403"),
    pytest.param({"action": "fail", "status": 500, "text": "no"}, id="500"),
    pytest.param({"action": "fail", "status": 596, "text": ""}, id="596"),
    pytest.param({"action": "drop"}, id="no answer"),
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_a_call_that_is_refused_costs_no_other(
    site: Site, answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of an observation in turn, of those that are made now: hosts, images and all that is
    known of them are as before, and the doctor names what can't be read, and continues."""
    monkeypatch.setattr(client, "READ_AGAIN_SECONDS", ())
    monkeypatch.setattr(client, "BREAK_SECONDS", (0.0,))
    _add_image(site)
    conf = configuration(site.folder, site.text())
    before, paths = _observed(site, conf)
    assert {"version", "access/permissions", "nodes/pve2/storage/local/content"} <= paths
    for path in sorted(paths - set(NEEDED)):
        [hypervisor] = drivers.hypervisors(conf)
        with contextlib.closing(hypervisor):
            assert _seen(hypervisor.observe()) == before, path
            _refuse(site, path, answer)
            hypervisor._refresher = _all_due(hypervisor._refresher)  # type: ignore[attr-defined]
            after = _seen(hypervisor.observe())
        node = path.split("/")[1] if path.startswith("nodes/") else ""
        short = path.removeprefix(f"nodes/{node}/") if node else path
        healths = {name: one.health for name, one in after.items()}
        # The size of an image's disk is read once.
        unwell = set() if "/content/" in path else {node} - {""}
        assert {name for name, health in healths.items() if health != "ok"} == unwell, path
        assert all(healths[name].startswith(f"{short} can't be read") for name in unwell)
        assert {name: replace(one, health="ok") for name, one in after.items()} == before, path
        found = examine.examine(conf).findings
        named = [one for one in found if one.what.startswith(f"{short} can't be read: ")]
        where = f"Node {node}" if node else "Cluster c1"
        assert [one.where for one in named] == [where], (path, found)
        assert {one.code for one in found} == {"fact_unread"}, (path, found)
        assert _observed(site, conf)[0].keys() == before.keys()
        site.cluster.faults.clear()


@pytest.mark.parametrize("answer", REFUSALS)
@pytest.mark.parametrize("path", NEEDED)
def test_what_nothing_is_known_without_is_named(
    site: Site, path: str, answer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "READ_AGAIN_SECONDS", ())
    conf = configuration(site.folder, site.text())
    [hypervisor] = drivers.hypervisors(conf)
    _refuse(site, path, answer)
    with contextlib.closing(hypervisor), pytest.raises(HypervisorError) as failed:
        hypervisor.observe()
    assert failed.value.message.startswith(f"{path} can't be read: ")
    found = [one for one in examine.examine(conf).findings if f"{path} can't be read" in one.what]
    assert found
    assert all(one.level is Level.BROKEN and one.lines for one in found), found


def test_images_that_cannot_be_read_for_a_moment_are_known_as_before(site: Site) -> None:
    """Also right after an upload, which has the storage listed again."""
    _add_image(site)
    [hypervisor] = drivers.hypervisors(configuration(site.folder, site.text()))
    with contextlib.closing(hypervisor):
        before = _seen(hypervisor.observe())
        assert all(one.images for one in before.values())
        fault = {"action": "fail", "method": "GET", "status": 500, "text": "no", "times": 0}
        site.cluster.faults.add({**fault, "path": "/storage/[^/]+/content$"})
        for node, one in before.items():
            for storage in one.storages:
                hypervisor.shared.relist(node, storage.name)  # type: ignore[attr-defined]
        after = _seen(hypervisor.observe())
        assert {node: one.images for node, one in after.items()} == {
            node: one.images for node, one in before.items()
        }
        assert "content can't be read" in after["pve1"].health
        site.cluster.faults.clear()
        assert _seen(hypervisor.observe()) == before


def _refuse(site: Site, path: str, answer: dict[str, Any]) -> None:
    fault = {"method": "GET", "times": 0, "path": f"^/{re.escape(path)}$"}
    site.cluster.faults.add({**fault, **answer})


def _add_image(site: Site) -> None:
    """A file of an image on a storage of each node, and on their shared storage."""
    for storage in ("local", "shared"):
        site.cluster.storages[storage].content = sorted(
            {*site.cluster.storages[storage].content, "import"}
        )


def _all_due(refresher: Any) -> Any:
    """Have all read again with the next look."""
    for name in ("_details", "_images", "_pinned", "_broken"):
        kept = getattr(refresher, name)
        setattr(refresher, name, {key: (0.0, value[1]) for key, value in kept.items()})
    refresher._clusterwide._rights_due = refresher._clusterwide._plans_due = 0.0
    return refresher


def _observed(site: Site, conf: Any) -> tuple[dict[str, Any], set[str]]:
    """What a first look shows, and the paths that it reads."""
    calls = f"{site.url()}/_sim/calls"
    options: Any = {"verify": str(site.simulator.options.state_dir / "ca.pem"), "timeout": 30}
    requests.delete(calls, **options)
    seen = _hosts(conf)
    made = requests.get(calls, **options).json()
    return seen, {
        one["path"].removeprefix("/api2/json/") for one in made if one["method"] == "GET"
    }


def _seen(observation: Any) -> dict[str, Any]:
    """Hosts by node, but for when they were seen."""
    return {
        one.node: replace(one, observed_at=None, uptime_seconds=None) for one in observation.hosts
    }


def _hosts(conf: Any) -> dict[str, Any]:
    """What an agent sees of its hosts, but for when."""
    [hypervisor] = drivers.hypervisors(conf)
    try:
        return _seen(hypervisor.observe())
    finally:
        hypervisor.close()


def test_a_fact_that_is_unread_costs_no_other(site: Site) -> None:
    """The machine types of a node could not be read, and it had no bridges, and no networks."""
    fault = {"action": "fail", "method": "GET", "status": 500, "text": "no", "times": 99}
    site.cluster.faults.add({**fault, "path": "/pve2/capabilities/qemu/machines$"})
    conf = configuration(site.folder, site.text())
    [hypervisor] = drivers.hypervisors(conf)
    try:
        hosts = {one.node: one for one in hypervisor.observe().hosts}
        assert hosts["pve2"].bridges == hosts["pve1"].bridges == ("vmbr0", "vmbr1")
        assert hosts["pve2"].cpu_model == hosts["pve1"].cpu_model
        assert (hosts["pve1"].machine_version != "", hosts["pve2"].machine_version) == (True, "")
        site.cluster.faults.clear()
        again = {one.node: one for one in hypervisor.observe().hosts}
        assert again["pve2"].machine_version == hosts["pve1"].machine_version
    finally:
        hypervisor.close()


def test_what_shows_whether_other_nodes_have_a_storage(site: Site) -> None:
    """Allowing all nodes a storage that only some have would take it from all of them."""
    lines = {}
    for kind in ("lvm", "lvmthin", "zfspool", "btrfs", "dir"):
        _add_local(site, ["pve1"])
        site.cluster.storages["local2"].type = kind
        lines[kind] = site.findings()["storage_differs"].lines
    assert lines == {
        "lvm": ("vgs",),
        "lvmthin": ("lvs",),
        "zfspool": ("zpool list",),
        "btrfs": ("btrfs filesystem show",),
        "dir": ("pvesm status --storage local2",),
    }
    del site.cluster.storages["local2"]
    _storage("shared", nodes=["pve1"])(site)
    assert site.findings()["storage_not_everywhere"].lines == ("pvesm set shared --delete nodes",)
    _storage("shared", type="lvm")(site)
    assert site.findings()["storage_not_everywhere"].lines == ("vgs",)


def _only_on(site: Site, *nodes: str) -> None:
    """Storages for config drives on these nodes alone."""
    for one in site.cluster.storages.values():
        one.content = [kind for kind in one.content if kind != "iso"]
    _add_local(site, list(nodes))
    site.cluster.storages["local2"].content = ["iso"]


def test_one_node_that_is_unfit_stops_no_start(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    _only_on(site, "pve1")
    examined = examine.check(configuration(site.folder, site.text()))
    assert [one.code for one in examined.findings if one.level == "broken"] == ["content_missing"]
    warning = next(one for one in caplog.messages if "content 'iso'" in one)
    assert "Node pve2: No storage takes content 'iso', for config drives." in warning
    assert "[proxmox:c1] hosts = pve1 (micronova up --set proxmox:c1.hosts=pve1)." in warning
    # As it says.
    site.options["hosts"] = "pve1"
    assert "content_missing" not in site.findings()


def test_no_node_that_is_fit_stops_the_start(site: Site) -> None:
    _only_on(site)
    site.cluster.storages["local2"].nodes = ["pve9"]
    with pytest.raises(ConfigurationError, match="takes content 'iso', for config drives"):
        examine.check(configuration(site.folder, site.text()))
