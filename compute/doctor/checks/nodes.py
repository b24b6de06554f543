"""Nodes: versions, clocks, daemons, and whether they serve."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping

from common import clock
from common.findings import Finding, Level
from compute.doctor.facts import Facts

#: the first release with import storages, which images come from
OLDEST = (8, 3)
#: seconds between a node's clock and this machine's from which on that is a finding
MOST_OFFSET_SECONDS = 5.0
#: major release → until when Proxmox mends its flaws
SUPPORTED_UNTIL: Mapping[int, datetime.date] = {
    7: datetime.date(2024, 7, 31),
    8: datetime.date(2026, 8, 31),
}
#: daemon → what doesn't work without it
DAEMONS: Mapping[str, str] = {
    "pvedaemon": "Nothing can be built or changed there.",
    "pvestatd": "The state of the node and of its servers is unknown to the cluster.",
    "pve-cluster": "The node can't read or write configurations.",
    "qmeventd": "Servers whose guest has powered off keep their devices, and don't start again.",
}
_IN_CLUSTERS: Mapping[str, str] = {"corosync": "The node has no part in the cluster."}
_WITH_HA: Mapping[str, str] = {
    "pve-ha-crm": "It can't become the manager of high availability.",
    "pve-ha-lrm": "HA resources on it are neither started nor stopped.",
}
_RELEASE = re.compile(r"([0-9]+)\.([0-9]+)", re.ASCII)
#: services that synchronise a node's clock; one of them is enough
_CLOCKS = ("chrony", "systemd-timesyncd")


def unread(facts: Facts) -> Iterator[Finding]:
    """Yield what could not be read: the checks of it, and what depends on it, are left out.

    A node that can't be reached is left out: ``serving`` reports it.
    """
    silent = tuple(f"nodes/{name}/" for name in facts.snapshot.silent)
    for node in facts.online:
        for path, one in sorted(facts.snapshot.unread_of(node.name).items()):
            if node.name in facts.snapshot.silent:
                continue
            yield Finding(
                "fact_unread",
                Level.WARNING,
                f"Node {node.name}",
                f"{path} can't be read: {one.why}.",
                f"{_known_by(path)} as it was read before, or not at all.",
                (one.remedy or f"pvesh get /nodes/{node.name}/{path}",),
            )
    clusterwide = {
        path: one for path, one in facts.snapshot.unread.items() if not path.startswith("nodes/")
    }
    for path, one in sorted({**clusterwide, **facts.unread}.items()):
        if path.startswith(silent) or (path in facts.snapshot.unread and path not in clusterwide):
            continue
        yield Finding(
            "fact_unread",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"{path} can't be read: {one.why}.",
            "The checks of it are left out."
            if path in facts.unread
            else "It counts as it was read before, or not at all.",
            (one.remedy or f"pvesh get /{path}",),
        )


def _known_by(path: str) -> str:
    """Return what is known by a path of a node, as the beginning of a sentence."""
    if path.startswith("storage/"):
        return f"What {path.split('/')[1]} has, its images too, counts"
    return _UNREAD.get(path, "It counts")


#: what is read of nodes → what is known by it
_UNREAD: Mapping[str, str] = {
    "status": "Its version and processors count",
    "network": "Its bridges, and with them its networks, count",
    "capabilities/qemu/machines": "Its machine types, by which live migrations are checked, count",
}


def versions(facts: Facts) -> Iterator[Finding]:
    """Yield releases that are too old, out of support, or mixed."""
    known = {name: text for name, text in _versions(facts) if _RELEASE.match(text)}
    for name, text in sorted(known.items()):
        if _release(text) < OLDEST:
            yield Finding(
                "version_old",
                Level.BROKEN,
                f"Node {name}",
                f"It has Proxmox VE {text}.",
                "Images can be imported from 8.3 on only: servers aren't built there.",
                ("apt update && apt dist-upgrade",),
            )
    majors = {_release(text)[0] for text in known.values()}
    for major in sorted(majors & SUPPORTED_UNTIL.keys()):
        until = SUPPORTED_UNTIL[major]
        if clock.utcnow().date() > until:
            yield Finding(
                "version_unsupported",
                Level.WARNING,
                f"Cluster {facts.name}",
                f"Proxmox VE {major} gets no updates since {until:%Y-%m-%d}.",
                "Its flaws stay, those of security too. The line checks what the upgrade needs.",
                (f"pve{major}to{major + 1} --full",),
            )
    if len(set(map(_release, known.values()))) > 1:
        releases = ", ".join(f"{name} has {text}" for name, text in sorted(known.items()))
        yield Finding(
            "versions_differ",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Its nodes have different releases: {releases}.",
            "Running servers move from an older release to a newer one, but not back.",
            ("apt update && apt dist-upgrade",),
        )


def _release(text: str) -> tuple[int, int]:
    """Return ``7.4-19`` as (7, 4). Raises ValueError for what has no release."""
    found = _RELEASE.match(text)
    if found is None:
        raise ValueError(text)
    return int(found[1]), int(found[2])


def _versions(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield what nodes that are online have; said as `pve-manager/9.2.11/…`."""
    for node in facts.snapshot.nodes.values():
        parts = node.detail.version.split("/")
        if node.online and len(parts) > 1:
            yield node.name, parts[1]


def daemons(facts: Facts) -> Iterator[Finding]:
    """Yield daemons that don't run, though servers need them."""
    wanted = {
        **DAEMONS,
        **(_IN_CLUSTERS if len(facts.snapshot.nodes) > 1 else {}),
        **(_WITH_HA if facts.ha_resources else {}),
    }
    for name, one in sorted(facts.details.items()):
        states = {str(daemon.get("name")): daemon for daemon in one.services}
        for daemon, why in wanted.items():
            if daemon in states and not _runs(states[daemon]):
                yield Finding(
                    "daemon_down",
                    Level.WARNING,
                    f"Node {name}",
                    f"{daemon} doesn't run: {states[daemon].get('state')}.",
                    why,
                    (f"systemctl restart {daemon}",),
                )
        if states and not any(_runs(states.get(clock_daemon, {})) for clock_daemon in _CLOCKS):
            yield Finding(
                "clock_unkept",
                Level.WARNING,
                f"Node {name}",
                f"None of {', '.join(_CLOCKS)} runs: its clock is not synchronized.",
                "Tasks and leases are judged by time, and so are certificates and tickets.",
                ("apt install chrony",),
            )


def _runs(daemon: Mapping[str, object]) -> bool:
    return daemon.get("active-state", daemon.get("state")) in ("active", "running")


def clocks(facts: Facts) -> Iterator[Finding]:
    """Yield clocks that differ from this machine's."""
    for name, one in sorted(facts.details.items()):
        offset = one.offset_seconds
        if offset is not None and abs(offset) >= MOST_OFFSET_SECONDS:
            way = "ahead of" if offset > 0 else "behind"
            yield Finding(
                "clock_off",
                Level.WARNING,
                f"Node {name}",
                f"Its clock is {abs(offset):.0f} s {way} this machine's.",
                "Tasks and leases are judged by time, and so are certificates and tickets.",
                ("systemctl restart chrony && chronyc makestep",),
            )


def serving(facts: Facts) -> Iterator[Finding]:
    """Yield nodes that are off, in maintenance, or silent behind another one."""
    for node in facts.ours:
        if not node.online:
            yield Finding(
                "node_offline",
                Level.WARNING,
                f"Node {node.name}",
                "It is offline.",
                "Nothing is built there, and its servers can't be reached.",
                ("pvecm status",),
            )
        elif node.maintenance:
            yield Finding(
                "node_in_maintenance",
                Level.WARNING,
                f"Node {node.name}",
                "The HA manager reports it in maintenance.",
                "Nothing is built there until that ends.",
                (f"ha-manager crm-command node-maintenance disable {node.name}",),
            )
        elif node.name in facts.snapshot.silent:
            yield Finding(
                "node_silent",
                Level.WARNING,
                f"Node {node.name}",
                "Another node finds no way to its daemon.",
                "Commands for it fail with 595 or 596.",
                ("systemctl restart pvedaemon pveproxy",),
            )


def processors(facts: Facts) -> Iterator[Finding]:
    """Yield processors that lack what guests get, or differ where guests get the node's own."""
    wanted = facts.settings.cpu_type
    for node in facts.online:
        flags = set(node.detail.cpu_flags)
        lacks = sorted(_FLAGS.get(wanted, frozenset()) - flags) if flags else []
        if lacks:
            yield Finding(
                "processor_lacks",
                Level.BROKEN,
                f"Node {node.name}",
                f"Its processor lacks {', '.join(lacks)}, which guests of type {wanted} need.",
                "No server starts there.",
                (f"# [proxmox:{facts.name}] cpu_type = {_best(flags)}",),
            )
    models = {node.detail.cpu_model for node in facts.online if node.detail.cpu_model}
    if wanted == "host" and len(models) > 1:
        yield Finding(
            "processors_differ",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Guests get the node's own processor, and nodes have {', '.join(sorted(models))}.",
            "Running servers can't move between them.",
            (f"# [proxmox:{facts.name}] cpu_type = {_best(_common_flags(facts))}",),
        )


def _common_flags(facts: Facts) -> set[str]:
    """Return the flags that all processors with known flags have in common."""
    known = [set(node.detail.cpu_flags) for node in facts.online if node.detail.cpu_flags]
    return set.intersection(*known) if known else set()


def _best(flags: set[str]) -> str:
    """Return the best type that a processor with these flags has."""
    fitting = [name for name, needs in _FLAGS.items() if needs <= flags]
    return fitting[-1] if fitting else "kvm64"


_V2 = frozenset({"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"})
_V3 = _V2 | {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
#: type → flags of /proc/cpuinfo that it needs (QEMU's x86-64 ABI levels)
_FLAGS = {
    "x86-64-v2": _V2,
    "x86-64-v2-AES": _V2 | {"aes"},
    "x86-64-v3": _V3 | {"aes"},
    "x86-64-v4": _V4 | {"aes"},
}
