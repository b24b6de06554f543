"""Nodes: versions, clocks, and whether they serve."""

from __future__ import annotations

from collections.abc import Iterator

from common.findings import Finding, Level
from common.guest.hardware import version
from compute.doctor.facts import Facts

#: the first release with import storages, which images come from
OLDEST = (8, 3)
#: seconds between a node's clock and this machine's from which it is told
MOST_OFFSET_SECONDS = 5.0


def versions(facts: Facts) -> Iterator[Finding]:
    """Yield releases that are too old, or mixed."""
    known = {name: one.version for name, one in facts.details.items() if one.version}
    for name, text in sorted(known.items()):
        if version(text) < OLDEST:
            yield Finding(
                "version_old",
                Level.BROKEN,
                f"Node {name}",
                f"It has Proxmox VE {text}.",
                "Images can be imported from 8.3 on only: servers aren't built there.",
                ("apt update && apt dist-upgrade",),
            )
    if len({version(text)[:2] for text in known.values()}) > 1:
        told = ", ".join(f"{name} has {text}" for name, text in sorted(known.items()))
        yield Finding(
            "versions_differ",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Its nodes have different releases: {told}.",
            "Running servers move from an older release to a newer one, but not back.",
            ("apt update && apt dist-upgrade",),
        )


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
                "High availability has it in maintenance.",
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
                f"No server starts there. Set [proxmox:{facts.name}] cpu_type to what all nodes "
                "have.",
            )
    models = {node.detail.cpu_model for node in facts.online if node.detail.cpu_model}
    if wanted == "host" and len(models) > 1:
        yield Finding(
            "processors_differ",
            Level.WARNING,
            f"Cluster {facts.name}",
            f"Guests get the node's own processor, and nodes have {', '.join(sorted(models))}.",
            "Running servers can't move between them. Set "
            f"[proxmox:{facts.name}] cpu_type to x86-64-v2-AES or better.",
        )


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
