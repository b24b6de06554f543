"""``micronova quota spread``: a project's limits in all regions, never more than a total.

Each region guards its own limit in its own database; nothing guards the sum while servers are
made. So the sum is held when limits change: all lower ones are set and read back before the first
higher one, and each higher one only while the limits of all regions, read again, allow it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cli.audits import answer
from cli.cloud import Cloud
from cli.command import Lister, Pairs, argument, flag
from cli.errors import CommandFailed, sentence
from cli.finding import segment

_COMPUTE, _VOLUME = "compute", "block_storage"
_RESOURCES: Mapping[str, str] = {
    **dict.fromkeys(("cores", "instances", "ram", "server_groups"), _COMPUTE),
    **dict.fromkeys(("backups", "gigabytes", "snapshots", "volumes"), _VOLUME),
}
_HEADERS = ("Region", "Resource", "In Use", "Limit", "New Limit")
UNLIMITED = -1


@dataclass(frozen=True)
class Limit:
    """A region's limit of one resource, and what is used of it."""

    limit: int
    in_use: int


def shares(total: int, in_use: Mapping[str, int]) -> dict[str, int]:
    """Return region → limit: what is in use, and an equal part of the rest; the sum is the total.

    >>> shares(10, {"north": 4, "south": 1})
    {'north': 7, 'south': 3}

    :raises CommandFailed: more is in use than the total.
    """
    rest = total - sum(in_use.values())
    if rest < 0:
        raise CommandFailed(f"{sum(in_use.values())} are in use already, which is over {total}")
    each, more = divmod(rest, len(in_use))
    return {
        region: in_use[region] + each + (number < more)
        for number, region in enumerate(sorted(in_use))
    }


class Quotas:
    """The limits of a project in several regions, over their APIs."""

    def __init__(self, regions: Mapping[str, Cloud], project_id: str) -> None:
        self._regions = regions
        self._project = project_id

    def read(self, resource: str) -> dict[str, Limit]:
        """Return region → limit. Raises CommandFailed where a region doesn't answer."""
        found = {}
        for region, cloud in self._regions.items():
            try:
                found[region] = self._limit(cloud, resource)
            except Exception as error:  # whatever it is, the limit isn't known
                raise CommandFailed(
                    f"{region}: {sentence(error)}. Its limit of {resource} isn't known, so that "
                    "none may be raised"
                ) from error
        return found

    def set(self, region: str, resource: str, limit: int) -> None:
        """Set a limit; the region refuses what is below its use."""
        path = f"/os-quota-sets/{segment(self._project)}"
        api = getattr(self._regions[region].connection, _RESOURCES[resource])
        answer(api.put(path, json={"quota_set": {resource: limit}}))

    def _limit(self, cloud: Cloud, resource: str) -> Limit:
        service = _RESOURCES[resource]
        detail, query = ("/detail", {}) if service == _COMPUTE else ("", {"usage": "True"})
        api = getattr(cloud.connection, service)
        path = f"/os-quota-sets/{segment(self._project)}{detail}"
        body = answer(api.get(path, params=query))
        one = body["quota_set"][resource]
        return Limit(one["limit"], one["in_use"] + one["reserved"])


def apply(quotas: Quotas, resource: str, wanted: Mapping[str, int]) -> None:
    """Give each region its limit; at no time is the sum above both the former sum and the new one.

    :raises CommandFailed: a region refused or doesn't answer, or somebody else changes limits;
        what was set by then is a part of the plan, and carrying it out again continues.
    """
    for region, limit in _lowered(quotas.read(resource), wanted):
        quotas.set(region, resource, limit)
    total = sum(wanted.values())
    for region in sorted(wanted):
        now = {name: one.limit for name, one in quotas.read(resource).items()}
        if now[region] == wanted[region]:
            continue
        after = {**now, region: wanted[region]}
        if UNLIMITED in after.values() or sum(after.values()) > total:
            raise CommandFailed(
                f"{resource} of {region} is not raised: another change of limits is under way, "
                f"and the sum would be over {total}"
            )
        quotas.set(region, resource, wanted[region])


def _lowered(now: Mapping[str, Limit], wanted: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    for region in sorted(wanted):
        limit = now[region].limit
        if limit == UNLIMITED or limit > wanted[region]:
            yield region, wanted[region]


class SpreadQuota(Lister):
    """Divide a project's limits among all regions, so that their sum is a total.

    Each region gets what is in use there and an equal part of the rest. Without --yes the new
    limits are only shown. Lower limits are set before higher ones, and a region that doesn't
    answer, or refuses, ends it before any limit is raised.
    """

    arguments = (
        argument("project", metavar="<project>", help="Project (name or ID)"),
        argument(
            "--total",
            metavar="<resource>=<number>",
            action=Pairs,
            required=True,
            help=f"Limit of all regions together (repeat): {', '.join(sorted(_RESOURCES))}",
        ),
        argument("--project-domain", metavar="<domain>", help="Domain of the project"),
        flag("--yes", help="Set the limits"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each region and resource."""
        totals = _totals(parsed_args.total)
        seconds: float = self.app.options.region_seconds
        regions = {name: self.cloud.in_region(name, seconds) for name in self.cloud.regions()}
        project = self.cloud.project_id(parsed_args.project, parsed_args.project_domain)
        quotas = Quotas(regions, project)
        plans = {}
        for resource, total in totals.items():
            before = quotas.read(resource)
            plans[resource] = (before, shares(total, {k: v.in_use for k, v in before.items()}))
        if parsed_args.yes:
            for resource, (_, wanted) in plans.items():
                apply(quotas, resource, wanted)
        else:
            self.say("Nothing was done; --yes does it.")
        return _HEADERS, [
            (region, resource, before[region].in_use, before[region].limit, wanted[region])
            for resource, (before, wanted) in plans.items()
            for region in sorted(wanted)
        ]


def _totals(given: Mapping[str, str]) -> dict[str, int]:
    """Return resource → total. Raises CommandFailed."""
    for resource, number in given.items():
        if resource not in _RESOURCES:
            known = ", ".join(sorted(_RESOURCES))
            raise CommandFailed(f"There is no resource {resource} to spread, there are: {known}")
        if not (number.isascii() and number.isdigit()):
            raise CommandFailed(f"{resource}={number}: a total is a number from 0")
    return {resource: int(number) for resource, number in given.items()}
