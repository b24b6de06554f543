"""Examines the configured clusters for faults, such as those that prevent builds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from oslo_config import cfg

from common.errors import ConfigurationError
from common.findings import Finding, Level
from common.log import logger
from compute import preflight
from compute.doctor.checks import reach, vmids
from compute.doctor.checks.table import CHECKS
from compute.doctor.facts import Facts
from compute.doctor.gather import Scope, gather
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.observe.snapshot import Snapshot
from compute.preflight import Checked

LOG = logger(__name__)

#: what each problem of the preflight means
_WHY: Mapping[str, str] = {
    "cluster_unusable": "Nothing can be built there.",
    "cluster_unreachable": "Nothing can be built there, and its servers can't be reached.",
    "certificate_untrusted": "The token isn't sent to who can't prove to be a node.",
    "token_refused": "Nothing of the cluster can be reached.",
    "token_lacks": "Servers can't be built, run or removed without them.",
    "privilege_missing": "All else works.",
    "privilege_optional": "It is optional, and in no role of docs/proxmox.md.",
    "firewall_off": "Security groups have no effect.",
    "no_quorum": "Proxmox VE changes nothing until it has.",
    "unknown_host": "No agent can work for a node that isn't there.",
    "none_online": "Nothing can be built there.",
    "ids_overlap": "A VM of a person may get an id that is reserved for a server.",
    "content_missing": "No server is built there.",
}


#: levels of what is refused for want of a privilege, or isn't filtered, other than a warning
_LEVELS: Mapping[str, Level] = {preflight.UNCHOSEN: Level.NOTE}


@dataclass(frozen=True)
class Seen:
    """One cluster."""

    checked: Checked
    findings: tuple[Finding, ...]
    facts: Facts | None = None
    """None: it can't be read."""


@dataclass(frozen=True)
class Examined:
    """What was found in all clusters."""

    clusters: tuple[Checked, ...]
    findings: tuple[Finding, ...]


def examine(conf: cfg.ConfigOpts) -> Examined:
    """Return all clusters and findings. Raises ConfigurationError for unreadable settings."""
    seen = []
    for cluster in settings.clusters(conf):
        with preflight.reading(cluster) as (client, refresh):
            seen.append(of_cluster(conf, client, refresh, Scope()))
    found = [finding for one in seen for finding in one.findings]
    found += vmids.between([one.facts for one in seen if one.facts is not None])
    return Examined(tuple(one.checked for one in seen), tuple(found))


def of_cluster(
    conf: cfg.ConfigOpts, client: Client, refresh: Callable[[], Snapshot], scope: Scope
) -> Seen:
    """Examine the client's cluster by one snapshot of it."""
    checked, problems = preflight.examine(conf, client, refresh)
    found = [
        *(_of_preflight(one, Level.BROKEN) for one in problems),
        *(_of_preflight(one, _LEVELS.get(one.code, Level.WARNING)) for one in checked.refused),
    ]
    if checked.snapshot is None:
        return Seen(checked, tuple(found))
    facts = gather(client, checked.snapshot, scope)
    # If the endpoints belong to two clusters, all other findings are wrong as well.
    mixed = list(reach.one_cluster(facts))
    found += mixed or [one for check in CHECKS for one in check(facts)]
    return Seen(checked, tuple(found), facts)


def check(conf: cfg.ConfigOpts) -> Examined:
    """Examine the clusters, and log what is no obstacle.

    Raises ConfigurationError, one line, for the first obstacle.
    """
    examined = examine(conf)
    unfit = {one.where for one in examined.findings if one.level is Level.BROKEN}
    for one in examined.findings:
        without = _left_out(examined.clusters, unfit, one.where)
        if one.level is not Level.BROKEN:
            LOG.log(one.level.severity, "%s", one)
        elif without:
            LOG.warning("%s %s", one, without)
        else:
            raise ConfigurationError(_sentence(one))
    return examined


def _left_out(clusters: Iterable[Checked], unfit: Collection[str], where: str) -> str:
    """Return how to leave out a node whose cluster has others that are fit; else nothing."""
    for cluster in clusters:
        if where not in {f"Node {name}" for name in cluster.nodes}:
            continue
        fit = [name for name in cluster.nodes if f"Node {name}" not in unfit]
        if fit and f"Cluster {cluster.name}" not in unfit:
            hosts = f"hosts = {','.join(fit)}"
            up = f"--set proxmox:{cluster.name}.hosts={','.join(fit)}"
            return (
                "The cloud can use the other nodes; to leave this one out: "
                f"[proxmox:{cluster.name}] {hosts} (micronova up {up})."
            )
    return ""


def _sentence(one: Finding) -> str:
    commands = [line for line in one.lines if not line.startswith("#")]
    mend = f" Run as root on one of its nodes: {' && '.join(commands)}" if commands else ""
    return f"{one.where}: {one.what}{mend}"


def _of_preflight(one: preflight.Finding, level: Level) -> Finding:
    where = f"Node {one.node}" if one.node else f"Cluster {one.cluster}"
    what = one.problem.removeprefix(f"{where}: ")
    return Finding(one.code, level, where, what, _WHY[one.code], one.remedy)


def lines(examined: Examined) -> Iterator[str]:
    """Yield a line for each cluster that can be read."""
    for one in examined.clusters:
        if one.version:
            nodes = ", ".join(one.nodes) or "none"
            yield f"Cluster {one.name}: Proxmox VE {one.version}, nodes: {nodes}."
