"""``micronova rebalance``: which moves would fill the hosts more evenly; nothing moves."""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

from cli.command import Lister, argument, flag
from cli.errors import CommandFailed


class Rebalance(Lister):
    """Propose live migrations that would fill the hosts more evenly.

    Each server goes only where the scheduler would let it. The gain is what a move takes off the
    score, in percent of what it is now; the cost is what has to be copied: memory, and disks that
    aren't on a storage that both hosts share. Nothing moves: there is no --apply yet.
    """

    arguments = (
        flag("--plan", help="Show the moves (required)"),
        flag("--apply", help="Not implemented; refused"),
        argument(
            "--limit", metavar="<count>", type=int, default=10, help="Maximum number of moves (10)"
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each move."""
        if parsed_args.apply:
            raise CommandFailed("Nothing was moved: servers can't be migrated yet; see --plan")
        if not parsed_args.plan:
            raise CommandFailed("Give --plan: servers can't be migrated yet")
        from openstack.exceptions import raise_from_response

        response = self.cloud.compute.get("/rebalance", params={"limit": parsed_args.limit})
        raise_from_response(response)
        plan = response.json()["rebalance"]
        before, after, moves = plan["score_before"], plan["score_after"], plan["moves"]
        self.say(
            f"{len(moves)} moves of {plan['considered']} servers would take the score from "
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
            noun = "server" if count == 1 else "servers"
            self.say(f"{count} {noun} can't be migrated: {reason}.")
