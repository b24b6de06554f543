"""``micronova node drain``: move a node's servers away."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from cli.admin import bulk
from cli.admin.node import HOST
from cli.audits import answer
from cli.command import Lister, argument, flag
from cli.finding import segment
from common.counting import counted

_PLAN = ("ID", "Name", "Way", "To", "Reason")


class DrainNode(Lister):
    """Move a node's servers to others, and show which can't be moved and why.

    The node is disabled first and remains disabled until `node enable`. Running servers are
    migrated live; those that can't be are stopped, moved and started again, or left in place with
    --live-only. The drain continues if this command is stopped. Exit code: 1 if servers are left.
    """

    arguments = (
        HOST,
        bulk.choice(flag("--dry-run", help="Show what would happen; change nothing")),
        argument(
            "--wait-for-room",
            metavar="<seconds>",
            type=int,
            default=0,
            help="For how long servers that find no host are tried again",
        ),
        flag("--live-only", help="Leave running servers that would have to be stopped"),
        bulk.AT_ONCE,
        bulk.WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each server."""
        host = parsed_args.host
        if parsed_args.dry_run:
            return _PLAN, self._plan(host, parsed_args.live_only)
        if bulk.steered(parsed_args):
            number = bulk.steer(self.cloud, parsed_args, "drain", host)
        else:
            asked = {"at_once": parsed_args.at_once, "live_only": parsed_args.live_only}
            if parsed_args.wait_for_room:
                asked["wait_seconds"] = parsed_args.wait_for_room
            number = bulk.begin(self.cloud, "drain", host=host, **asked)
        found = shown(self, number, wait=parsed_args.wait)
        return bulk.HEADERS, bulk.rows(found)

    def _plan(self, host: str, live_only: bool) -> list[tuple[Any, ...]]:
        query = {"live_only": "true"} if live_only else {}
        plan = answer(self.cloud.compute.get(f"/drains/{segment(host)}", params=query))["drain"]
        servers = plan["servers"]
        stay = sum(one["target"] is None for one in servers)
        moved = len(servers) - stay
        self.say(f"{counted(moved, 'server')} would move, {stay} would stay; nothing was moved.")
        keys = ("server", "name", "way", "target", "reason")
        return [tuple(one[key] or "" for key in keys) for one in servers]


def shown(command: Lister, number: int, *, wait: bool) -> Mapping[str, Any]:
    """Return one, at its end if that is waited for; say how it stands."""
    if wait:
        found = bulk.until_over(command.cloud, number, command.say)
    else:
        found = bulk.get(command.cloud, number)
    command.say(bulk.summary(found))
    command.exit_code = bulk.FAILED if found["state"] == "failed" else 0
    return found
