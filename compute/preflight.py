"""Preflight: is every configured cluster reachable and trusted, and has the token its privileges?

What is missing is reported in one line with the exact command that adds it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from oslo_config import cfg

from common.errors import ConfigurationError
from common.findings import in_line
from common.log import logger
from common.messages.reports import Category
from common.resources import networks, vnets
from compute.hypervisor.port import HypervisorError
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api import calls, privileges
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.observe.clusterwide import (
    configured_storages,
    missing_privileges,
    storages_of,
    why_unfiltered,
)
from compute.hypervisor.proxmox.observe.reads import NeededError
from compute.hypervisor.proxmox.observe.refresh import Refresher
from compute.hypervisor.proxmox.observe.snapshot import Node, Snapshot, Storage, chosen
from compute.hypervisor.proxmox.settings import ClusterSettings
from compute.hypervisor.proxmox.vmconfig import storage_types

LOG = logger(__name__)

UNAUTHENTICATED = 401
#: code of the finding that a cluster's firewall is off although ports are to be filtered
UNFILTERED = "firewall_off"
#: code of the finding that the token lacks what the documented roles leave out
UNCHOSEN = "privilege_optional"
_BY_CHOICE = frozenset(purpose.value for purpose in calls.BY_CHOICE)


@dataclass(frozen=True)
class Finding:
    """One problem, and the commands that solve it (as root on a node)."""

    cluster: str
    problem: str
    remedy: tuple[str, ...] = ()
    code: str = "cluster_unusable"
    """See `docs/doctor.md`."""
    node: str = ""
    """The only node that it is about; empty: the cluster."""

    def __str__(self) -> str:
        mend = f" Run as root on one of its nodes: {in_line(self.remedy)}" if self.remedy else ""
        return f"Cluster {self.cluster}: {self.problem}{mend}"


@dataclass(frozen=True)
class Checked:
    """A cluster that passed."""

    name: str
    version: str
    nodes: tuple[str, ...]
    """Nodes that are online and whose agents this worker carries."""
    refused: tuple[Finding, ...] = ()
    """What is refused for want of a privilege, or isn't filtered; all else works."""
    snapshot: Snapshot | None = field(default=None, repr=False)
    """What it was judged by; None: it can't be read."""


def check(conf: cfg.ConfigOpts) -> list[Checked]:
    """Return all clusters. Raises ConfigurationError, one line, for the first problem."""
    passed = []
    for checked, found in _examined(conf):
        if found:
            raise ConfigurationError(str(found[0]))
        passed.append(checked)
    return passed


def findings(conf: cfg.ConfigOpts) -> list[Finding]:
    """Return all problems of all clusters. Raises ConfigurationError for unreadable
    settings."""
    return [one for _, found in _examined(conf) for one in found]


def _examined(conf: cfg.ConfigOpts) -> Iterator[tuple[Checked, list[Finding]]]:
    for cluster in settings.clusters(conf):
        with reading(cluster) as (client, refresh):
            yield examine(conf, client, refresh)


@contextlib.contextmanager
def reading(cluster: ClusterSettings) -> Iterator[tuple[Client, Callable[[], Snapshot]]]:
    """Give a client of a cluster, and what makes a snapshot of it with that client."""
    client = Client(cluster)
    refresher = Refresher(client, 0, 0)
    try:
        yield client, refresher.refresh
    finally:
        refresher.close()
        client.close()


def are_filtered(conf: cfg.ConfigOpts) -> bool:
    """Return whether ports are to be filtered by their security groups, where that is possible."""
    return str(conf.networks.firewall) != "off"


def vnet_zones(conf: cfg.ConfigOpts, cluster: str) -> tuple[str, ...]:
    """Return the SDN zones in which a cluster's networks get vnets."""
    ranges = vnets.parse_all(conf.networks.tenant_vnets)
    return tuple(sorted({one.zone for one in ranges if one.holds(cluster)}))


def examine(
    conf: cfg.ConfigOpts, client: Client, refresh: Callable[[], Snapshot]
) -> tuple[Checked, list[Finding]]:
    """Return the client's cluster and its problems. The snapshot is made once."""
    cluster = client.settings
    try:
        _reach(client)
        # Before the refresh, which needs some of them: so all missing ones are reported at once.
        granted, lacking = _lacking(client, lambda: configured_storages(client))
        if lacking:
            return _nothing(cluster), [_lacks(cluster, lacking, granted or {})]
        snapshot = refresh()
        ours = storages_of(_ours(cluster, snapshot))
        granted, lacking = _lacking(client, lambda: ours)
        wanted = _wanted(cluster, snapshot, vnet_zones(conf, cluster.name))
        # What can't be read is no refusal: the doctor names it.
        refused = () if granted is None else _refused(cluster, granted, wanted)
        problems = [*refused, *_unfiltered(cluster, client, conf)]
        overlap = next_ids(cluster, _optional(client, "cluster/options"), snapshot.vms)
    except HypervisorError as error:
        return _nothing(cluster), [
            Finding(
                cluster.name,
                _sentence(cluster, error),
                _remedy(cluster, error),
                _CODES.get(error.category, "cluster_unusable"),
            )
        ]
    found = [_lacks(cluster, lacking, granted or {})] if lacking else []
    found += _problems(cluster, snapshot)
    if overlap is not None:
        found.append(overlap)
    nodes = tuple(sorted(node.name for node in _ours(cluster, snapshot) if node.online))
    return Checked(cluster.name, snapshot.version, nodes, tuple(problems), snapshot), found


def _reach(client: Client) -> None:
    """See that the cluster answers, and knows the token. Raises HypervisorError."""
    try:
        client.get("version")
    except ApiError as error:
        if _is_unknown(error) or not (error.status or error.lost):
            raise
        # One call that is refused says nothing of the others.
        LOG.warning("version can't be read: %s", error.message)


def _lacking(
    client: Client, storages: Callable[[], Sequence[tuple[str, frozenset[str]]]]
) -> tuple[privileges.Granted | None, list[privileges.Need]]:
    """Return what the token may, and what it lacks; None and nothing where that can't be read.

    Raises HypervisorError if the token is unknown.
    """
    try:
        lacking = missing_privileges(client, storages())
        granted: privileges.Granted = client.get(privileges.PERMISSIONS)
    except HypervisorError as error:
        if _is_unknown(error):
            raise
        LOG.warning("What the token may can't be read: %s", error.message)
        return None, []
    return granted, lacking


def _optional(client: Client, path: str) -> Mapping[str, Any]:
    """Return the answer of a GET, empty where it can't be read: the rest is still checked."""
    try:
        found: Mapping[str, Any] = client.get(path)
    except HypervisorError as error:
        LOG.warning("%s can't be read: %s", path, error.message)
        return {}
    return found


_CODES = {
    Category.AUTHORIZATION: "token_refused",
    Category.CONFIGURATION: "certificate_untrusted",
    Category.NODE_UNHEALTHY: "cluster_unreachable",
}


def _nothing(cluster: ClusterSettings) -> Checked:
    return Checked(cluster.name, "", ())


def _ours(cluster: ClusterSettings, snapshot: Snapshot) -> list[Node]:
    nodes = snapshot.nodes.values()
    return [node for node in nodes if not cluster.hosts or node.name in cluster.hosts]


def _sentence(cluster: ClusterSettings, error: HypervisorError) -> str:
    if error.category is Category.NODE_UNHEALTHY and isinstance(error, ApiError):
        return f"{error.message} Is the address right, and `systemctl status pveproxy` well there?"
    if error.category is not Category.AUTHORIZATION:
        return error.message
    why = error.message.rstrip(".: ")
    if _is_unknown(error):
        why += "; there is no such token, or its secret is another one"
    return f"The token {cluster.token.id} is refused ({why})."


def _remedy(cluster: ClusterSettings, error: HypervisorError) -> tuple[str, ...]:
    if error.category is Category.NODE_UNHEALTHY:
        return ("systemctl restart pveproxy",)
    if error.category is Category.CONFIGURATION:
        return (error.remedy,) if error.remedy else ()
    if isinstance(error, NeededError):
        return (error.remedy or f"pvesh get /{error.path}",)
    if error.category is not Category.AUTHORIZATION:
        return ()
    if _is_unknown(error):  # its privileges are checked once the token is known
        return (*privileges.secret_lines(cluster.token), privileges.token_file(cluster))
    return tuple(privileges.all_grant_lines(cluster.token))


def _is_unknown(error: HypervisorError) -> bool:
    return isinstance(error, ApiError) and error.status == UNAUTHENTICATED


def _lacks(
    cluster: ClusterSettings, missing: list[privileges.Need], granted: privileges.Granted
) -> Finding:
    return Finding(
        cluster.name,
        f"The token {cluster.token.id} lacks privileges ({privileges.sentence(missing)}).",
        tuple(privileges.grant_lines(missing, cluster.token, granted)),
        "token_lacks",
    )


def _wanted(
    cluster: ClusterSettings, snapshot: Snapshot, zones: Sequence[str]
) -> list[privileges.Need]:
    """Return what the token may lack, for all that the configuration asks for."""
    imports = {
        name for name, contents in storages_of(_ours(cluster, snapshot)) if "import" in contents
    }
    return [
        *privileges.optional(snapshot.version, affinity_rules=cluster.write_affinity_rules),
        *privileges.uploads(sorted(imports)),
        *privileges.vnets(zones),
    ]


def _refused(
    cluster: ClusterSettings,
    granted: privileges.Granted,
    optional: Sequence[privileges.Need],
) -> Iterator[Finding]:
    """Yield what the token lacks that it may lack."""
    lacking = privileges.lacking(granted, optional)
    for why in dict.fromkeys(need.why for need in lacking):
        missing = [need for need in lacking if need.why == why]
        yield Finding(
            cluster.name,
            f"{why[0].upper()}{why[1:]} are refused: the token {cluster.token.id} lacks "
            f"{privileges.sentence(missing)}.",
            tuple(privileges.grant_lines(missing, cluster.token, granted)),
            UNCHOSEN if why in _BY_CHOICE else "privilege_missing",
        )


def _unfiltered(
    cluster: ClusterSettings, client: Client, conf: cfg.ConfigOpts
) -> Iterator[Finding]:
    """Yield that the datacenter's firewall is off although ports are to be filtered."""
    if not are_filtered(conf):
        return
    try:
        why = why_unfiltered(client)
    except HypervisorError as error:
        LOG.warning("The firewall's options can't be read: %s", error.message)
        return
    if not why:
        return
    option = str(conf.networks.firewall)
    effect = "Nothing is filtered here" if option == networks.ON else "New ports aren't filtered"
    yield Finding(
        cluster.name,
        f"{effect}, although [networks] firewall is {option}: {why}. Before it is turned on, see "
        "which rules let administrators in.",
        ("pvesh set /cluster/firewall/options --enable 1",),
        UNFILTERED,
    )


#: nothing of the API brings a node back: it says which one is missing
_LOOK = ("pvecm status",)


def _problems(cluster: ClusterSettings, snapshot: Snapshot) -> Iterator[Finding]:
    if not snapshot.quorate:
        yield Finding(cluster.name, "It has no quorum.", _LOOK, "no_quorum")
    unknown = cluster.hosts - set(snapshot.nodes)
    if unknown:
        names = ", ".join(sorted(unknown))
        line = f"# [proxmox:{cluster.name}] hosts = {','.join(sorted(snapshot.nodes))}"
        yield Finding(cluster.name, f"It has no node {names} (hosts).", (line,), "unknown_host")
    online = [node for node in _ours(cluster, snapshot) if node.online]
    if not online:
        yield Finding(cluster.name, "None of its nodes is online.", _LOOK, "none_online")
    for node in online:
        yield from _storages(cluster, node)


#: minimum number of ids that must remain below the band
LEFT_TO_PEOPLE = 100
_FIRST_ID, _LAST_ID = 100, 1_000_000


def next_ids(
    cluster: ClusterSettings, options: Mapping[str, Any], taken: Iterable[int]
) -> Finding | None:
    """Return whether the ids that Proxmox VE proposes are in the band, or soon will be."""
    bounds = options.get("next-id") or {}
    if isinstance(bounds, str):
        bounds = dict(part.split("=", 1) for part in bounds.split(",") if "=" in part)
    first = int(bounds.get("lower") or _FIRST_ID)
    last = int(bounds.get("upper") or _LAST_ID)
    if last <= cluster.vmid_low or first > cluster.vmid_high:
        return None
    before = range(first, cluster.vmid_low)
    left = len(before) - sum(vmid in before for vmid in taken)
    if left >= LEFT_TO_PEOPLE:
        return None
    return Finding(
        cluster.name,
        f"Proxmox VE proposes VMIDs from {first} on to people; {left} of them are left before the "
        f"band {cluster.vmid_low} to {cluster.vmid_high} that only this cloud uses.",
        (
            "pvesh set /cluster/options --next-id "
            f"lower={_FIRST_ID},upper={max(_FIRST_ID + 1, cluster.vmid_low)}",
        ),
        "ids_overlap",
    )


_CONTENTS: Mapping[str, str] = {"images": "root disks", "iso": "config drives", "import": "images"}


def _storages(cluster: ClusterSettings, node: Node) -> Iterator[Finding]:
    """Yield the contents that a node's storages lack, with the commands that enable them."""
    configured = {"images": cluster.vm_storage, "iso": cluster.iso_storage}
    for content, why in _CONTENTS.items():
        storage = chosen(node, configured.get(content), content)
        if storage is not None and storage.active and content in storage.content:
            continue
        name = configured.get(content)
        target = node.storages.get(name) if name else _candidate(node)
        remedy: tuple[str, ...]
        if target is not None:
            contents = ",".join(sorted(target.content | {content}))
            remedy = (f"pvesm set {target.name} --content {contents}",)
        elif name:
            there = _candidate(node)
            option = "vm_storage" if content == "images" else "iso_storage"
            remedy = (f"# [proxmox:{cluster.name}] {option} = {there.name if there else ''}",)
        else:
            remedy = ("pvesm add dir images --path /var/lib/images --content images,import,iso",)
        which = f"Storage {name}" if name else "No storage"
        state = "isn't active there or doesn't take" if name else "takes"
        yield Finding(
            cluster.name,
            f"Node {node.name}: {which} {state} content '{content}', for {why}.",
            remedy,
            "content_missing",
            node.name,
        )


def _candidate(node: Node) -> Storage | None:
    """Return a file storage, where any content can be enabled."""
    files = [
        one for one in node.storages.values() if one.active and storage_types.of(one.kind).files
    ]
    return max(files, key=lambda one: one.available, default=None)
