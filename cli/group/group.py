"""``micronova group …``: groups of servers whose number is kept."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from cli.audits import answer
from cli.cloud import Cloud
from cli.columns import Blank, Pairs
from cli.command import Command, Lister, ShowOne, argument, flag, one_of
from cli.command import Pairs as PairsOption
from cli.errors import CommandFailed
from cli.finding import segment

_WAIT = flag("--wait", help="Return once the group is as desired")
_GROUP = argument("group", metavar="<group>", help="Group (name or ID)")
_NOT_SHOWN_YET = {"CREATING", "RESIZING", "UPDATING", "CHECKING", "RECOVERING", "DELETING"}
_PAUSE_SECONDS = 1.0
_KEPT = ("volumes", "ports")
_SPEC_TYPE, _SPEC_VERSION = "os.nova.server", "1.0"
_COLUMNS = ("ID", "Name", "Status", "Servers", "Desired", "Min", "Max", "Profile")

#: what servers are made of; given at `create`, `update` and `replace`
_PROFILE = (
    argument("--profile", metavar="<profile>", help="Profile (name or ID) that there is"),
    argument("--flavor", metavar="<flavor>", help="Flavor (name or ID), for a new profile"),
    argument("--image", metavar="<image>", help="Image (name or ID), for a new profile"),
    argument(
        "--network",
        metavar="<network>",
        action="append",
        help="Network (name or ID), for a new profile; may be repeated",
    ),
    argument("--key-name", metavar="<key>", help="Key pair, for a new profile"),
    argument("--user-data", metavar="<file>", help="File for cloud-init, for a new profile"),
    argument(
        "--security-group",
        metavar="<group>",
        action="append",
        help="Security group, for a new profile; may be repeated",
    ),
    argument(
        "--hint",
        metavar="<key=value>",
        action=PairsOption,
        help="Scheduler hint, such as group=<server group's ID>, for a new profile",
    ),
)
_OPTION = argument(
    "--option",
    metavar="<key=value>",
    action=PairsOption,
    help="at_once, max_surge, max_unavailable, min_ready_seconds, wait_seconds, shrink, "
    "roll_back, zones, clusters, keep, health_agent, health_tcp_port, health_url, "
    "health_interval, health_threshold or health_grace; may be repeated",
)


class CreateGroup(ShowOne):
    """Create a group of servers whose number is kept."""

    arguments = (
        argument("name", metavar="<name>", help="Name of the group, and of its servers"),
        argument("--count", metavar="<count>", type=int, default=1, help="How many servers (1)"),
        argument("--min", metavar="<count>", type=int, default=0, help="The fewest (0)"),
        argument("--max", metavar="<count>", type=int, default=-1, help="The most (no limit)"),
        *_PROFILE,
        _OPTION,
        _WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Create it; return what it is."""
        asked = {
            "name": parsed_args.name,
            "profile_id": profile_of(self.cloud, parsed_args, parsed_args.name),
            "desired_capacity": parsed_args.count,
            "min_size": parsed_args.min,
            "max_size": parsed_args.max,
            "config": config_of(parsed_args.option),
        }
        made = answer(api(self.cloud).post("/clusters", json={"cluster": asked}))["cluster"]
        return shown(self, made["id"], wait=parsed_args.wait)


class ListGroups(Lister):
    """List groups of servers."""

    in_all_regions = True

    arguments = (flag("--all-projects", help="Of all projects (admin only)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each group."""
        query = {"global_project": str(parsed_args.all_projects)}
        found = answer(api(self.cloud).get("/clusters", params=query))["clusters"]
        return _COLUMNS, [
            (
                *(one["id"], one["name"], one["status"], len(one["nodes"])),
                *(one["desired_capacity"], one["min_size"], _most(one), one["profile_name"]),
            )
            for one in found
        ]


class ShowGroup(ShowOne):
    """Show a group and its servers."""

    in_all_regions = True

    arguments = (_GROUP,)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return what it is."""
        return shown(self, parsed_args.group, wait=False)


class ScaleGroup(ShowOne):
    """Change how many servers a group has."""

    arguments = (
        _GROUP,
        argument(
            "count",
            metavar="<count>",
            help="How many; with a sign, how many more: `4`, `+2`, `-1`",
        ),
        _WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Change it; return what it is."""
        text = parsed_args.count
        digits = text.removeprefix("+").removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise CommandFailed(f"'{text}' is no number of servers")
        kind = "CHANGE_IN_CAPACITY" if text[0] in "+-" else "EXACT_CAPACITY"
        act(self.cloud, parsed_args.group, "resize", adjustment_type=kind, number=int(text))
        return shown(self, parsed_args.group, wait=parsed_args.wait)


class UpdateGroup(ShowOne):
    """Change a group; its servers remain as they are."""

    arguments = (
        _GROUP,
        argument("--name", metavar="<name>", help="Another name"),
        argument("--min", metavar="<count>", type=int, help="The fewest servers"),
        argument("--max", metavar="<count>", type=int, help="The most servers; -1: no limit"),
        argument("--profile", metavar="<profile>", help="Profile of servers created from now on"),
        _OPTION,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Change it; return what it is."""
        before = get(self.cloud, parsed_args.group)
        changes: dict[str, Any] = {}
        if parsed_args.name:
            changes["name"] = parsed_args.name
        if parsed_args.profile:
            changes |= {"profile_id": parsed_args.profile, "profile_only": True}
        if parsed_args.option:
            changes["config"] = {**before["config"], **config_of(parsed_args.option)}
        if changes:
            path = f"/clusters/{before['id']}"
            answer(api(self.cloud).patch(path, json={"cluster": changes}))
        limits = {"min_size": parsed_args.min, "max_size": parsed_args.max}
        given = {name: value for name, value in limits.items() if value is not None}
        if given:
            act(self.cloud, before["id"], "resize", **given)
        return shown(self, before["id"], wait=False)


class ReplaceGroup(ShowOne):
    """Replace a group's servers by such of another profile, a few at a time.

    At most max_surge servers more than desired exist, and at most max_unavailable fewer than
    desired work; an update whose new servers do not work is reverted.
    """

    arguments = (
        _GROUP,
        *_PROFILE,
        one_of(
            flag("--pause", help="Go no further for now"),
            flag("--resume", help="Go on"),
            flag("--roll-back", help="Have servers of the former profile again"),
        ),
        _WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Begin or steer it; return what the group is."""
        group = get(self.cloud, parsed_args.group)
        verbs = [one for one in ("pause", "resume", "roll_back") if getattr(parsed_args, one)]
        if verbs:
            act(self.cloud, group["id"], f"micronova:{verbs[0]}")
        else:
            profile = profile_of(self.cloud, parsed_args, group["name"])
            changes = {"profile_id": profile}
            path = f"/clusters/{group['id']}"
            answer(api(self.cloud).patch(path, json={"cluster": changes}))
        return shown(self, group["id"], wait=parsed_args.wait)


class RecoverGroup(ShowOne):
    """Repair a group's servers that do not work, and try creations again that had stopped."""

    arguments = (_GROUP, _WAIT)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Begin it; return what the group is."""
        act(self.cloud, parsed_args.group, "recover")
        return shown(self, parsed_args.group, wait=parsed_args.wait)


class ExplainGroup(Command):
    """Explain why a group is as it is, and what would change that."""

    arguments = (_GROUP,)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print it."""
        path = f"{path_of(parsed_args.group)}/explanation"
        found = answer(api(self.cloud).get(path))["explanation"]
        self.app.stdout.write("\n".join(explained(found)) + "\n")


class DeleteGroup(Command):
    """Delete groups with their servers."""

    arguments = (
        argument("groups", metavar="<group>", nargs="+", help="Groups (names or IDs)"),
        flag("--keep", help="Keep the servers, which are in no group then"),
        flag("--wait", help="Return once they are gone"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Delete them."""

        def delete(name: str) -> None:
            group = get(self.cloud, name)
            act(self.cloud, group["id"], "micronova:delete", keep=parsed_args.keep)
            if parsed_args.wait:
                self._until_gone(group["id"])

        self.each(parsed_args.groups, "delete group", delete)

    def _until_gone(self, group_id: str) -> None:
        while api(self.cloud).get(f"/clusters/{group_id}").status_code != 404:
            self.cloud.pause(_PAUSE_SECONDS)


class ShowGroupQuota(ShowOne):
    """Show how many groups a project may have, and has; set it."""

    arguments = (
        argument("--project", metavar="<project>", help="Project (name or ID); your own if none"),
        argument(
            "--set", metavar="<count>", type=int, help="Another limit; -1: none (admin only)"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return limit and use."""
        path = f"/quotas/{self.cloud.project_id(parsed_args.project)}"
        if parsed_args.set is not None:
            answer(api(self.cloud).put(path, json={"quota": {"groups": parsed_args.set}}))
        found = answer(api(self.cloud).get(path))["quota"]["groups"]
        return ("limit", "in use"), (found["limit"], found["in_use"])


def api(cloud: Cloud) -> Any:
    """Return the clustering API."""
    return cloud.connection.clustering


def path_of(name_or_id: str) -> str:
    """Return the path of a group. Raises NotFound."""
    return f"/clusters/{segment(name_or_id)}"


def get(cloud: Cloud, name_or_id: str) -> Mapping[str, Any]:
    """Return a group."""
    found: Mapping[str, Any] = answer(api(cloud).get(path_of(name_or_id)))["cluster"]
    return found


def act(cloud: Cloud, name_or_id: str, action: str, **values: Any) -> None:
    """Have an action carried out."""
    answer(api(cloud).post(f"{path_of(name_or_id)}/actions", json={action: values}))


def config_of(given: Mapping[str, str] | None) -> dict[str, str]:
    """Return a group's config from the options of a command line."""
    return {f"micronova.{name}": value for name, value in (given or {}).items()}


def profile_of(cloud: Cloud, given: argparse.Namespace, name: str) -> str:
    """Return the profile that is named, or the ID of a new one.

    :raises CommandFailed: neither is given, or both are.
    """
    properties = {
        "flavor": given.flavor,
        "image": given.image,
        "key_name": given.key_name,
        "networks": [{"network": one} for one in given.network or ()],
        "security_groups": given.security_group,
        "scheduler_hints": given.hint,
        "user_data": _encoded(given.user_data) if given.user_data else None,
    }
    wanted = {name: value for name, value in properties.items() if value}
    if given.profile and wanted:
        raise CommandFailed("Give a --profile, or what a new one is made of, not both")
    if given.profile:
        return str(given.profile)
    if not given.flavor:
        raise CommandFailed("Give a --profile, or at least --flavor and --image for a new one")
    spec = {"type": _SPEC_TYPE, "version": _SPEC_VERSION, "properties": wanted}
    body = {"profile": {"name": name, "spec": spec}}
    return str(answer(api(cloud).post("/profiles", json=body))["profile"]["id"])


def _encoded(path: str) -> str:
    import base64
    from pathlib import Path

    try:
        return base64.b64encode(Path(path).expanduser().read_bytes()).decode()
    except OSError as error:
        raise CommandFailed(f"Can't read {path}: {error.strerror}") from error


def shown(command: Command, name_or_id: str, *, wait: bool) -> Any:
    """Return names and values of a group; once it is as desired, if that is waited for."""
    cloud = command.cloud
    group = get(cloud, name_or_id)
    while wait and group["status"] in _NOT_SHOWN_YET:
        cloud.pause(_PAUSE_SECONDS)
        group = get(cloud, group["id"])
    if wait and group["status"] != "ACTIVE":
        raise CommandFailed(
            f"Group {group['name']} is {group['status']}: {group['status_reason']} "
            f"(micronova group explain {group['id']})"
        )
    nodes = answer(api(cloud).get("/nodes", params={"cluster_id": group["id"]}))["nodes"]
    servers = {one["name"]: one["physical_id"] or one["status"] for one in nodes}
    values = {
        "id": group["id"],
        "name": group["name"],
        "status": group["status"],
        "reason": group["status_reason"],
        "desired": group["desired_capacity"],
        "min": group["min_size"],
        "max": _most(group),
        "profile": group["profile_name"],
        "options": Pairs(group["config"]),
        "servers": Pairs(servers),
    }
    for kind in _KEPT:
        kept = {one["name"]: ",".join(one["data"].get(kind, ())) for one in nodes}
        if any(kept.values()):
            values[kind] = Pairs({name: some for name, some in kept.items() if some})
    return tuple(values), tuple(values.values())


def _most(group: Mapping[str, Any]) -> Any:
    return Blank(None) if group["max_size"] < 0 else group["max_size"]


def explained(found: Mapping[str, Any]) -> list[str]:
    """Return the lines of an explanation. Pure."""
    lines = [f"Group {found['name']} ({found['cluster_id']}) is {found['status']}."]
    lines += [f"  {one}" for one in found["sentences"]]
    if found["nodes"]:
        lines += ["", "Servers:"]
    for one in found["nodes"]:
        reason = f": {one['reason']}" if one["reason"] else ""
        seen = one.get("health")
        health = f"  {seen['result']} since {seen['since']}" if seen else ""
        server = one["server"] or "-"
        lines.append(f"  {one['name']}  {one['status']}  {server}{health}{reason}")
        its = {kind: ", ".join(one[kind]) for kind in _KEPT if kind in one}
        lines += [f"      {kind} of its place: {some}" for kind, some in its.items()]
    if found["actions"]:
        lines += ["", "Last operations (micronova explain REQUEST has each step):"]
    for one in found["actions"]:
        lines.append(f"  {one['at']}  {one['action']}  {one['status']}  {one['request_id']}")
        if one["message"]:
            lines.append(f"      {one['message']}")
    return lines
