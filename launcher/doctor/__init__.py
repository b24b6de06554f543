"""Is the installation fit for use? Clusters, databases, bus, Keystone, policy files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from oslo_config import cfg

from common.findings import Finding


@dataclass(frozen=True)
class Diagnosis:
    """What there is, and what is wrong with it."""

    lines: tuple[str, ...]
    """What is there, a line each."""
    findings: tuple[Finding, ...]


def diagnose(conf: cfg.ConfigOpts) -> Diagnosis:
    """Examine what a configuration names. Raises ConfigurationError for unreadable settings."""
    from launcher.doctor import bus, data, files, identity

    checks: tuple[Callable[[cfg.ConfigOpts], Iterator[Finding]], ...] = (
        files.readable_by_others,
        files.policies,
        data.databases,
        data.roles,
        bus.bus,
        identity.keystone,
    )
    lines, found = _clusters(conf)
    return Diagnosis(lines, (*found, *(one for check in checks for one in check(conf))))


def _clusters(conf: cfg.ConfigOpts) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    if conf.compute.driver == "null":
        return ("No Proxmox VE: [compute] driver is null.",), ()
    from compute.doctor import examine

    if not conf.proxmox.clusters:
        return ("No cluster: [proxmox] clusters is empty; agents have files of their own.",), ()
    examined = examine.examine(conf)
    return tuple(examine.lines(examined)), examined.findings
