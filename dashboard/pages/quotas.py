"""Quotas: what a project may have and has; administrators see and change any project's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from common.resources.quotas import ABSENT
from common.story.labels import label
from dashboard.answer import Answer, Redirect, confirm, view
from dashboard.cloud import CLUSTERING, COMPUTE, IDENTITY, NETWORK, VOLUME, Call, rows, segment
from dashboard.errors import ApiRefused
from dashboard.page import Page
from dashboard.pages.meters import Meter
from dashboard.rights import May
from dashboard.visit import Visit, as_number

_FOUND = 50


@dataclass(frozen=True)
class Service:
    """One API's quotas."""

    name: str
    title: str
    path: str
    """Of limits with usage; `{}` is the project's ID."""
    key: str
    query: Mapping[str, str]
    used: str
    """What the API calls the used part."""
    change: str
    """Where limits are set, and reset."""
    titles: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Of its quotas, in place of those of `_TITLES`."""


_SETS = "/os-quota-sets/{}"
SERVICES = (
    Service(COMPUTE, "Servers", f"{_SETS}/detail", "quota_set", {}, "in_use", _SETS),
    Service(VOLUME, "Volumes", _SETS, "quota_set", {"usage": "true"}, "in_use", _SETS),
    Service(
        NETWORK, "Networks", "/v2.0/quotas/{}/details", "quota", {}, "used", "/v2.0/quotas/{}"
    ),
    Service(
        CLUSTERING,
        "Scaling groups",
        "/quotas/{}",
        "quota",
        {},
        "in_use",
        "/quotas/{}",
        {"groups": ("Scaling groups", "")},
    ),
)

#: quota → (what it counts, unit)
_TITLES: Mapping[str, tuple[str, str]] = {
    "instances": ("Servers", ""),
    "cores": ("VCPUs", ""),
    "ram": ("Memory", "MiB"),
    "metadata_items": ("Metadata items of a server", ""),
    "server_group_members": ("Servers of a group", ""),
    "gigabytes": ("Volumes and snapshots", "GiB"),
    "per_volume_gigabytes": ("One volume", "GiB"),
    "backup_gigabytes": ("Backups", "GiB"),
    "groups": ("Groups of volumes", ""),
    "network": ("Networks", ""),
    "subnet": ("Subnets", ""),
    "port": ("Ports", ""),
    "router": ("Routers", ""),
    "floatingip": ("Floating IPs", ""),
    "subnetpool": ("Subnet pools", ""),
    "rbac_policy": ("RBAC policies", ""),
    "security_group": ("Security groups", ""),
    "security_group_rule": ("Security group rules", ""),
}
#: quotas of a type of volumes are named so, and end with the type's name
_OF_TYPES: Mapping[str, tuple[str, str]] = {
    "volumes_": ("Volumes of type", ""),
    "snapshots_": ("Snapshots of type", ""),
    "gigabytes_": ("Volumes and snapshots of type", "GiB"),
}
#: limits on the size of one resource, which have no usage
_SIZES = frozenset({"metadata_items", "server_group_members", "per_volume_gigabytes"})
#: what a project owns, and would leave behind
_OWNED = frozenset(
    {"instances", "server_groups", "volumes", "snapshots", "backups", "network", "groups"}
)


@dataclass(frozen=True)
class Limit:
    """One quota."""

    name: str
    """Of the form's field: service and quota."""
    meter: Meter
    counts: bool
    """Whether something is used of it."""


@dataclass(frozen=True)
class Group:
    """The quotas of one API."""

    title: str
    limits: Sequence[Limit]


def own(visit: Visit) -> Answer:
    """Show the own project's quotas; administrators search for another project's."""
    asked = visit.query.get("project", "").strip()[:255] if visit.operates else ""
    found = calls(visit.project_id)
    if asked:
        found.append(Call(IDENTITY, "/projects", {"name__contains": asked}, optional=True))
    answers = visit.cloud.together(*found)
    projects = rows(answers[len(SERVICES)], "projects") if asked else ()
    name = dict(visit.session.projects).get(visit.project_id, visit.project_id)
    return view(
        "quotas.html",
        project={"id": visit.project_id, "name": name},
        groups=list(_groups(answers)),
        asked=asked,
        projects=[one for one in projects if not one.get("is_domain")][:_FOUND],
        is_own=True,
    )


def of_project(visit: Visit) -> Answer:
    """Show any project's quotas."""
    project = visit.params["project_id"]
    answers = visit.cloud.together(
        Call(IDENTITY, f"/projects/{segment(project)}"), *calls(project)
    )
    return view(
        "quotas.html",
        project=answers[0]["project"],
        groups=list(_groups(answers[1:])),
        asked="",
        projects=(),
        is_own=False,
    )


def change(visit: Visit) -> Answer:
    """Set the limits that differ from the form, one request for each API."""
    project = visit.params["project_id"]
    answers = visit.cloud.together(*calls(project))
    changed = False
    for service, answer in zip(SERVICES, answers, strict=True):
        wanted = dict(_wanted(visit, service, answer))
        if not wanted:
            continue
        changed = True
        try:
            path = service.change.format(segment(project))
            visit.cloud.put(service.name, path, {service.key: wanted})
        except ApiRefused as refused:
            visit.note(f"{service.title}: {refused.message}", "failed", refused.request_id)
        else:
            visit.note(f"{service.title}: the limits are set.")
    if not changed:
        visit.note("Nothing was to be changed.")
    return Redirect(f"/quotas/{segment(project)}")


def ask_reset(visit: Visit) -> Answer:
    """Ask whether a project's limits are to be the defaults again."""
    path = f"/projects/{segment(visit.params['project_id'])}"
    project = visit.cloud.get(IDENTITY, path)["project"]
    said = "The limits that were set for this project are lost: those of all projects apply."
    title = f"Reset the quotas of {project['name']} to the defaults?"
    page = f"/quotas/{segment(visit.params['project_id'])}"
    return confirm(title, said, f"{page}/reset", page, "Reset to the defaults")


def reset(visit: Visit) -> Answer:
    """Set a project's limits back to the defaults, one request for each API."""
    project = visit.params["project_id"]
    for service in (one for one in SERVICES if visit.cloud.has(one.name)):
        try:
            visit.cloud.delete(service.name, service.change.format(segment(project)))
        except ApiRefused as refused:
            # Neutron has nothing to reset where no limit was set, and Senlin has no quotas
            if refused.status != HTTPStatus.NOT_FOUND:
                visit.note(f"{service.title}: {refused.message}", "failed", refused.request_id)
        else:
            visit.note(f"{service.title}: the limits are the defaults.")
    return Redirect(f"/quotas/{segment(project)}")


def left_behind(answers: Sequence[Any]) -> str:
    """Return what a project has, by the answers of `calls`; empty: nothing."""
    found = (
        f"{limit.meter.title.lower()}: {limit.meter.used}"
        for group in _groups(answers)
        for limit in group.limits
        if limit.name.rpartition(".")[2] in _OWNED and limit.meter.used
    )
    return ", ".join(found)


def calls(project_id: str) -> list[Call]:
    """Return the requests for a project's limits and usage, one for each API."""
    return [
        Call(one.name, one.path.format(segment(project_id)), one.query, optional=True)
        for one in SERVICES
    ]


def _wanted(visit: Visit, service: Service, answer: Any) -> Iterator[tuple[str, Any]]:
    if not answer:
        return
    for name, facts in _facts(service, answer):
        given = visit.field(f"{service.name}.{name}")
        if given and given != str(facts["limit"]):
            yield name, as_number(given)


def _groups(answers: Sequence[Any]) -> Iterator[Group]:
    for service, answer in zip(SERVICES, answers, strict=False):
        if not answer:
            continue
        limits = [
            _limit(service, name, facts)
            for name, facts in _facts(service, answer)
            # what no project can make, unless a Neutron that can has limits of it
            if name not in ABSENT or facts["limit"] or facts.get(service.used)
        ]
        yield Group(service.title, limits)


def _facts(service: Service, answer: Any) -> Iterator[tuple[str, Mapping[str, int]]]:
    for name, facts in answer[service.key].items():
        if isinstance(facts, Mapping):
            yield name, facts


def _limit(service: Service, name: str, facts: Mapping[str, int]) -> Limit:
    title, unit = service.titles.get(name) or _title(name)
    used, limit = int(facts.get(service.used, 0)), int(facts["limit"])
    return Limit(f"{service.name}.{name}", Meter(title, used, limit, unit), name not in _SIZES)


def _title(name: str) -> tuple[str, str]:
    """Return what a quota counts, and its unit."""
    for start, (of_type, unit) in _OF_TYPES.items():
        if name.startswith(start):
            return f"{of_type} {name.removeprefix(start)}", unit
    words = label(name)
    return _TITLES.get(name, (words[:1].upper() + words[1:], ""))


_PROJECT = "/quotas/{project_id}"
PAGES = (
    Page("/quotas", own, calls=5),
    Page(_PROJECT, of_project, May.OPERATE, calls=5),
    Page(_PROJECT, change, May.OPERATE, "POST", calls=8),
    Page(f"{_PROJECT}/reset", ask_reset, May.OPERATE),
    Page(f"{_PROJECT}/reset", reset, May.OPERATE, "POST", calls=4),
)
