"""Compares the firewalls of VMs with the security groups of their servers' ports. Pure.

Agents compare, as only they know the words of a hypervisor; here it is decided what counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conductor.audit.facts import Facts, Finding, ServerFacts
from conductor.audit.nics import read_vms


def firewalls(facts: Facts) -> Iterator[Finding]:
    """Yield servers whose VM's firewall is not what their groups say, or has rules of others."""
    for server, _ in read_vms(facts):
        seen = (facts.firewalls or {}).get(server.uuid)
        if seen is None or server.uuid in facts.firewalls_due:
            continue
        if seen.differs:
            text = f"It is not what the security groups say: {_shortened(seen.differs)}."
            yield _finding("firewall_differs", server, text, seen.differs)
        if seen.foreign:
            text = f"Others have put into it: {_shortened(seen.foreign)}."
            yield _finding("firewall_foreign", server, text, seen.foreign)


def _shortened(sentences: Sequence[str], most: int = 5) -> str:
    more = f"; {len(sentences) - most} more" if len(sentences) > most else ""
    return "; ".join(sentences[:most]) + more


def _finding(kind: str, server: ServerFacts, cause: str, seen: Sequence[str]) -> Finding:
    subject, where = f"{server.cluster}/{server.vmid}", (server.cluster, server.node, server.vmid)
    return Finding(kind, subject, cause, True, server.uuid, *where, {"seen": list(seen)})
