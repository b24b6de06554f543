"""The checks of ``micronova status upgrade-check``, with the results and codes of nova-status."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code, Result, UpgradeCommands

from common.errors import ConfigurationError, Unavailable
from common.findings import Finding, Level, in_line
from common.release import VERSION, is_older
from launcher import databases
from launcher.upgrading import options

if TYPE_CHECKING:
    from db.reads.releases import Running

OLDEST = "1.0.0"
"""The oldest release whose services this one's may run beside."""

#: operations and services that a detail names
_MOST = 5
_CODES: Mapping[Level, Code] = {
    Level.BROKEN: Code.FAILURE,
    Level.WARNING: Code.WARNING,
    Level.NOTE: Code.SUCCESS,
}

Check = Callable[[cfg.ConfigOpts], Result]


def schema(conf: cfg.ConfigOpts, name: str) -> Result:
    """Whether a database can be expanded, and what would be done."""
    from common.databases import revisions

    url = databases.urls(conf).get(name)
    if url is None:
        return Result(Code.SUCCESS, "It isn't named in these files.")
    found, known = databases.state(name, url)
    if found.expanded is None:
        return Result(Code.WARNING, "It is empty: run 'micronova db upgrade'.")
    refused = revisions.refusal(found, known)
    if refused is not None:
        return Result(Code.FAILURE, f"It {refused}.")
    expand = revisions.to_expand(found, known)
    contract = revisions.to_contract(found, known)
    if expand:
        more = f"; 'micronova db contract' then does {', '.join(contract)}" if contract else ""
        return Result(Code.SUCCESS, f"'micronova db expand' does {', '.join(expand)}{more}.")
    if contract:
        later = "once all services are of this release, run 'micronova db contract'"
        return Result(Code.WARNING, f"{', '.join(contract)} is to follow: {later}.")
    return Result(Code.SUCCESS, f"It is at {found.expanded}: nothing is to be done.")


def services(conf: cfg.ConfigOpts) -> Result:
    """Whether this release's services may run beside those that run."""
    running = [one for name, url in databases.urls(conf).items() for one in _running(name, url)]
    old = [one for one in running if is_older(one.version, OLDEST) and is_older(one.version)]
    if old:
        named = ", ".join(map(str, old[:_MOST]))
        return Result(Code.FAILURE, f"They are of before {OLDEST}: {named}. Stop them first.")
    newer = [one for one in running if is_older(VERSION, one.version)]
    if newer:
        named = ", ".join(map(str, newer[:_MOST]))
        return Result(Code.WARNING, f"They are newer than this release, {VERSION}: {named}.")
    beside = sum(is_older(one.version) for one in running)
    return Result(Code.SUCCESS, f"{len(running)} seen, {beside} of an older release.")


def _running(name: str, url: str) -> list[Running]:
    # an empty database has no services
    return databases.running(name, url) if databases.state(name, url)[0].expanded else []


def operations(conf: cfg.ConfigOpts) -> Result:
    """Whether conductors of this release can continue all that is under way."""
    from conductor import open_operations
    from db import migrate

    url = _cloud(conf)
    if url is None:
        return Result(Code.SUCCESS, "No cloud database with tables is in these files.")
    number, lost = migrate.read(url, open_operations.unreadable)
    if not lost:
        return Result(Code.SUCCESS, f"{number} under way.")
    named = ", ".join(f"{key} ({action})" for key, action in lost[:_MOST])
    return Result(
        Code.FAILURE,
        f"{len(lost)} of {number} under way can't be read by this release: {named}. Wait until "
        "the present release has ended them.",
    )


def restored(conf: cfg.ConfigOpts) -> Result:
    """Whether what follows from a restored database is decided."""
    from launcher.doctor import data

    return of_findings(data.restored(conf), "Nothing is held.")


def policies(conf: cfg.ConfigOpts) -> Result:
    """Whether the policy file fits this release's rules."""
    from launcher.doctor import files

    return of_findings(files.policies(conf), "All rules are known.")


def proxmox(conf: cfg.ConfigOpts) -> Result:
    """Whether the clusters have the version and the privileges that this release needs."""
    from compute import drivers

    if conf.compute.driver != drivers.PROXMOX or not conf.proxmox.clusters:
        return Result(Code.SUCCESS, "No cluster is named in these files.")
    from compute.doctor import examine

    found = examine.examine(conf)
    return of_findings(found.findings, " ".join(examine.lines(found)))


def of_findings(found: Iterable[Finding], fine: str) -> Result:
    """Return the result of what the doctor finds: the worst of it, and all but notes in words."""
    wrong = [one for one in found if one.level is not Level.NOTE]
    code = max((_CODES[one.level] for one in wrong), default=Code.SUCCESS)
    said = [f"{one.where}: {one.what} {in_line(one.lines)}".strip() for one in wrong]
    return Result(code, " ".join(said) or fine)


def _cloud(conf: cfg.ConfigOpts) -> str | None:
    url = databases.urls(conf).get("cloud")
    if url is None or databases.state("cloud", url)[0].expanded is None:
        return None
    return url


CHECKS: Mapping[str, Check] = {
    "Configuration": options.check,
    "Policies": policies,
    "Cloud database": functools.partial(schema, name="cloud"),
    "Placement database": functools.partial(schema, name="placement"),
    "Services": services,
    "Operations": operations,
    "Restored record": restored,
    "Proxmox VE": proxmox,
}


def results(conf: cfg.ConfigOpts) -> dict[str, Result]:
    """Carry out all checks; what can't be looked at is a failure."""
    return {name: _whole(check, conf) for name, check in CHECKS.items()}


def _whole(check: Check, conf: cfg.ConfigOpts) -> Result:
    try:
        return check(conf)
    except (ConfigurationError, Unavailable) as error:
        return Result(Code.FAILURE, error.message)


class Table(UpgradeCommands):
    """Results that are there, as nova-status prints them."""

    def __init__(self, found: Mapping[str, Result]) -> None:
        self._upgrade_checks = tuple(
            (name, lambda _, result=result: result) for name, result in found.items()
        )
