"""Addresses and certificates of a cluster's API."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from common import clock
from common.findings import Finding, Level
from compute.doctor.facts import Facts
from compute.hypervisor.proxmox.api import handshake

#: a certificate that expires sooner is a finding
SOON = datetime.timedelta(days=30)


def endpoints(facts: Facts) -> Iterator[Finding]:
    """Yield addresses that don't answer, beside others that do."""
    for one in facts.endpoints:
        if one.problem and one.trusted:
            yield Finding(
                "endpoint_unreachable",
                Level.WARNING,
                f"Cluster {facts.name}",
                f"The endpoint {one.name} doesn't answer: {one.problem}",
                "If the others fail as well, nothing of the cluster can be reached.",
                (one.line,),
            )
        elif one.problem:
            yield Finding(
                "certificate_untrusted",
                Level.WARNING,
                f"Cluster {facts.name}",
                one.problem,
                f"The endpoint {one.name} isn't used.",
                (one.line,),
            )


def certificates(facts: Facts) -> Iterator[Finding]:
    """Yield certificates that end soon, or that nobody checks."""
    if facts.settings.verify is False:
        yield Finding(
            "certificate_unchecked",
            Level.WARNING,
            f"Cluster {facts.name}",
            "Certificates are not checked (insecure is true).",
            "An attacker between here and a node can read the token. The cluster's CA is in "
            "/etc/pve/pve-root-ca.pem of a node.",
            (f"# [proxmox:{facts.name}] ca_file = <its copy here>, insecure = false",),
        )
    for one in facts.endpoints:
        ends = one.certificate_ends
        if ends is not None and ends - clock.utcnow() < SOON:
            yield Finding(
                "certificate_ends",
                Level.WARNING,
                f"Cluster {facts.name}",
                f"The certificate of {one.name} is valid until {ends:%Y-%m-%d}.",
                "After that the endpoint isn't trusted any more.",
                (handshake.RENEW,),
            )


def one_cluster(facts: Facts) -> Iterator[Finding]:
    """Yield that the addresses belong to different clusters."""
    seen = {one.members for one in facts.endpoints if one.members}
    if len(seen) > 1:
        each = "; ".join(
            f"{one.name} has {', '.join(sorted(one.members))}"
            for one in facts.endpoints
            if one.members
        )
        yield Finding(
            "endpoints_differ",
            Level.BROKEN,
            f"Cluster {facts.name}",
            f"Its endpoints belong to different clusters: {each}.",
            "VMs of one would be looked for in the other. Each cluster has a group of its own.",
            (f"# [proxmox:{facts.name}] endpoints = {_alike(facts)}",),
        )


def _alike(facts: Facts) -> str:
    """Return the endpoints that belong to the cluster of the first one."""
    first = next(one.members for one in facts.endpoints if one.members)
    return ",".join(f"https://{one.name}" for one in facts.endpoints if one.members == first)
