"""Is the installation fit for use? Clusters, databases, bus, Keystone, policy files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from oslo_config import cfg

from common.errors import ConfigurationError
from common.findings import Finding, Level
from common.log import logger
from compute import drivers

LOG = logger(__name__)

Check = Callable[[cfg.ConfigOpts], Iterator[Finding]]


@dataclass(frozen=True)
class Diagnosis:
    """The clusters that were examined, and what is wrong."""

    lines: tuple[str, ...]
    """A line about each cluster."""
    findings: tuple[Finding, ...]


def diagnose(conf: cfg.ConfigOpts, checks: Iterable[Check] | None = None) -> Diagnosis:
    """Examine what a configuration names; without ``checks`` by all of them.

    Raises ConfigurationError for unreadable settings.
    """
    lines, found = _clusters(conf)
    others = (one for check in checks or _checks() for one in _whole(check, conf))
    return Diagnosis(lines, (*found, *others))


def _checks() -> tuple[Check, ...]:
    from launcher.doctor import bus, data, files, identity, servers

    return (
        files.readable_by_others,
        files.policies,
        data.drivers,
        data.databases,
        data.room,
        data.clocks,
        servers.servers,
        data.roles,
        data.restored,
        bus.bus,
        identity.keystone,
        identity.token_check,
    )


def _whole(check: Check, conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield what a check finds; where it breaks off, that: the others are carried out anyway.

    Raises ConfigurationError for unreadable settings.
    """
    try:
        yield from check(conf)
    except ConfigurationError:
        raise
    except Exception as error:
        name = check.__name__.replace("_", " ")
        LOG.debug("The check of %s broke off.", name, exc_info=True)
        what = f"The check of {name} broke off: {type(error).__name__}: {error}".splitlines()[0]
        why = "What it would have found isn't known."
        yield Finding("check_broke_off", Level.BROKEN, "Doctor", what, why)


def _clusters(conf: cfg.ConfigOpts) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    if conf.compute.driver != drivers.PROXMOX:
        return (f"No Proxmox VE: [compute] driver is {conf.compute.driver}.",), ()
    from compute.doctor import examine

    if not conf.proxmox.clusters:
        return ("No cluster: [proxmox] clusters is empty; agents have files of their own.",), ()
    examined = examine.examine(conf)
    return tuple(examine.lines(examined)), examined.findings
