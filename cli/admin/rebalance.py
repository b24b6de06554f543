"""``micronova rebalance``: moves that fill the hosts more evenly, planned and carried out."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from cli.admin import bulk
from cli.admin.drain import shown
from cli.audits import answer
from cli.command import Lister, argument, flag
from cli.errors import CommandFailed
from common.counting import counted


class Rebalance(Lister):
    """Propose migrations that fill the hosts more evenly, or carry them out.

    Each server moves only to a host that the scheduler allows; running servers are migrated live,
    and no server is stopped. The gain is the reduction of the score by a move, in percent of the
    current score; the cost is the data to copy: memory, and disks that aren't on a storage that
    both hosts share. Moves begun by --apply continue if this command is stopped. Exit code: 1 if
    servers that were to move are left.
    """

    arguments = (
        bulk.choice(
            flag("--plan", help="Show the moves; nothing moves"),
            flag("--apply", help="Plan again, and carry the moves out"),
        ),
        argument(
            "--limit", metavar="<count>", type=int, default=10, help="Maximum number of moves (10)"
        ),
        bulk.AT_ONCE,
        bulk.WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each move."""
        if parsed_args.plan:
            return self._plan(parsed_args.limit)
        if parsed_args.apply:
            asked = {"limit": parsed_args.limit, "at_once": parsed_args.at_once}
            number = bulk.begin(self.cloud, "rebalance", **asked)
        elif bulk.steered(parsed_args):
            number = bulk.steer(self.cloud, parsed_args, "rebalance", None)
        else:
            raise CommandFailed("Give --plan or --apply; --status shows the last one applied")
        return bulk.HEADERS, bulk.rows(shown(self, number, wait=parsed_args.wait))

    def _plan(self, limit: int) -> Any:
        response = self.cloud.compute.get("/rebalance", params={"limit": limit})
        plan = answer(response)["rebalance"]
        before, after, moves = plan["score_before"], plan["score_after"], plan["moves"]
        if not moves:
            self.say(
                f"Nothing would be moved: the hosts' allocated shares differ by "
                f"{100 * before**0.5:.1f} % (standard deviation); below 0.5 % all is even."
            )
        else:
            self.say(
                f"{counted(len(moves), 'move')} of {counted(plan['considered'], 'server')} would "
                "take the score from "
                f"{before:.6f} to {after:.6f}; nothing was moved."
            )
        self._show_pinned(plan["pinned"])
        return (
            ("ID", "Name", "From", "To", "GiB RAM", "GiB Disk", "Gain"),
            [
                (
                    *(move[key] for key in ("server", "name", "source", "target")),
                    round(move["memory_mib"] / 1024, 1),
                    move["disk_gib"],
                    f"{100 * move['gain'] / before:.1f} %",
                )
                for move in moves
            ],
        )

    def _show_pinned(self, pinned: list[dict[str, Any]]) -> None:
        """Say how many servers can't move, and why, each reason once."""
        reasons = Counter(one["reason"] for one in pinned)
        for reason, count in reasons.most_common():
            self.say(f"{counted(count, 'server')} can't be migrated: {reason}.")
