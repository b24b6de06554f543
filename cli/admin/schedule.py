"""``micronova schedule`` and ``micronova capacity``: what would happen; nothing is created."""

from __future__ import annotations

import argparse
from typing import Any

from cli.command import Lister, argument, flag
from cli.errors import CommandFailed
from cli.finding import segment
from cli.server.create import Nic, network_ids
from cli.server.where import WHERE, where
from cli.terminal import write
from common.counting import counted
from common.story.amounts import by_class
from common.story.decision import decision_lines

_WITHOUT = argument(
    "--without",
    metavar="<host>",
    action="append",
    default=[],
    help="Ignore this host, as if it had failed (repeat)",
)
_ZONE = argument("--availability-zone", metavar="<zone-name>", help="Zone")


class Schedule(Lister):
    """Show where servers would be placed now, and why.

    It is decided by the scheduler's own code, one server after the other; nothing is created.
    Fails when a server would find no host.
    """

    in_all_regions = True
    one_region_is_enough = True

    arguments = (
        flag("--dry-run", help="Accepted for clarity: this command never creates"),
        argument("--flavor", metavar="<flavor>", required=True, help="Flavor (name or ID)"),
        argument("--image", metavar="<image>", required=True, help="Image (name or ID)"),
        argument(
            "--network", metavar="<network>", dest="nics", action=Nic, help="Network (repeat)"
        ),
        argument(
            "--nic",
            metavar="<net-id=network|auto|none>",
            dest="nics",
            action=Nic,
            help="Network interface (repeat)",
        ),
        *WHERE,
        flag(
            "--why", help="Show scores, and each refused host with its reason (on standard error)"
        ),
        argument("--count", metavar="<count>", type=int, default=1, help="Number of servers (1)"),
        _WITHOUT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each server."""
        if parsed_args.count < 1:
            raise CommandFailed("--count is less than 1")
        compute = self.cloud.compute
        asked: dict[str, Any] = {
            "name": "dry-run",
            "flavorRef": self.cloud.find("flavor", parsed_args.flavor).id,
            "imageRef": self.cloud.find("image", parsed_args.image).id,
            "min_count": parsed_args.count,
            "max_count": parsed_args.count,
            "networks": network_ids(self.cloud, parsed_args.nics or ["auto"]),
        }
        attributes, hints = where(self.cloud, parsed_args)
        answer = compute.post(
            "/schedule",
            json={"server": asked | attributes, "os:scheduler_hints": hints},
            params={"without": parsed_args.without},
            microversion="2.74",
        )
        decisions = _json(answer)["schedule"]["decisions"]
        lost = sum(decision["host"] is None for decision in decisions)
        for number, decision in enumerate(decisions, 1) if parsed_args.why else ():
            self.say(f"Server {number}")
            write(self.app.stderr, decision_lines(decision))
        if lost:
            self.say(f"{lost} of {len(decisions)} would find no host.")
            self.exit_code = 1
        return (
            ("Server", "Host", "Considered", "Refused", "Alternates", "Reason"),
            [(number, *_row(decision)) for number, decision in enumerate(decisions, 1)],
        )


class ShowCapacity(Lister):
    """Show how many more servers of a flavor fit, and what limits each host.

    With --without alone: where each server of that host would go if it died; fails when one
    would find no host. With --waiting: how many more hosts of each kind would take the servers
    that wait for room.
    """

    in_all_regions = True
    one_region_is_enough = True

    arguments = (
        argument("--flavor", metavar="<flavor>", help="Flavor (name or ID)"),
        argument("--image", metavar="<image>", help="Image (name or ID)"),
        _ZONE,
        _WITHOUT,
        argument("--waiting", action="store_true", help="More hosts for those that wait instead"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each host, for each server that would have to move, or for each kind
        of host."""
        if parsed_args.waiting:
            return self._for_waiting()
        if parsed_args.flavor:
            return self._room(parsed_args)
        if len(parsed_args.without) != 1:
            raise CommandFailed("Name a --flavor, or one host with --without, or say --waiting")
        return self._loss(parsed_args.without[0])

    def _room(self, parsed_args: argparse.Namespace) -> Any:
        compute = self.cloud.compute
        query: dict[str, Any] = {
            "flavor": self.cloud.find("flavor", parsed_args.flavor).id,
            "without": parsed_args.without,
        }
        if parsed_args.image:
            query["image"] = self.cloud.find("image", parsed_args.image).id
        if parsed_args.availability_zone:
            query["availability_zone"] = parsed_args.availability_zone
        found = _json(compute.get("/capacity", params=query))["capacity"]
        self.say(f"{found['total']} more would fit.")
        rows = [
            (host["host"], host["availability_zone"], host["count"], host["limit"])
            for host in found["hosts"]
        ]
        return ("Host", "Zone", "Fit", "Limited By"), rows

    def _for_waiting(self) -> Any:
        found = _json(self.cloud.compute.get("/waiting/hosts"))
        count = found["waiting"]
        self.say(f"{counted(count, 'server waits', 'servers wait')} for room.")
        rows = [
            (
                *(one["like_host"], one["availability_zone"], by_class(one["capacity"])),
                *(one["hosts_now"], one["more_hosts"], f"{one['takes']} of {count}"),
                ", ".join(one.get("traits", ())),
            )
            for one in found["kinds"]
        ]
        return (
            "Like Host",
            "Zone",
            "Each Offers",
            "There Are",
            "More",
            "Would Take",
            "Traits",
        ), rows

    def _loss(self, host: str) -> Any:
        found = _json(self.cloud.compute.get(f"/evacuations/{segment(host)}"))["evacuation"]
        moving = counted(len(found["servers"]), "server")
        if found["fits"]:
            self.say(f"Without {host} all of its {moving} would find another host.")
        else:
            lost = sum(server["host"] is None for server in found["servers"])
            kept = sum(
                server["host"] is not None and bool(server["kept"]) for server in found["servers"]
            )
            self.say(f"Without {host} {lost} of its {moving} would find no host.")
            if kept:
                self.say(f"{kept} more would find one and can't be had there: see their reasons.")
            self.exit_code = 1
        rows = [
            (
                server["server"],
                server["name"],
                server["host"] or "",
                server["reason"] or server["kept"] or "",
            )
            for server in found["servers"]
        ]
        return ("ID", "Name", "Would Go To", "Reason"), rows


def _json(response: Any) -> Any:
    from openstack.exceptions import raise_from_response

    raise_from_response(response)
    return response.json()


def _row(decision: dict[str, Any]) -> tuple[Any, ...]:
    return (
        decision["host"] or "",
        decision["considered"],
        ", ".join(f"{len(hosts)} by {name}" for name, hosts in decision["refused"].items()),
        ", ".join(alternate["host"] for alternate in decision["alternates"]),
        decision["reason"] or "",
    )
