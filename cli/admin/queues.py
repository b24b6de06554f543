"""``micronova queue list``: what runs and what waits on each host, by queue."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.audits import answer
from cli.cloud import Cloud
from cli.columns import Blank
from cli.command import Lister, argument
from common.story import room
from common.story.amounts import by_class
from common.story.text import whole_seconds

_HEADERS = ("Host", "Queue", "Shared", "Running", "Width", "Waiting", "Oldest", "Reported")
_WAITING_HEADERS = (
    *("Place", "Server", "Project", "Needs", "Zone", "Since", "Until", "Overtaken"),
    *("Host kept", "Nearest", "Would do"),
)
UNKNOWN = "unknown"


class ListQueues(Lister):
    """List what runs and what waits on each host, as its agent last reported it.

    Operations wait for a thread of the agent, or for the one before on the same VM; a running one
    may wait for a storage. The width is how many run at a time, on all hosts together where it is
    shared. Storages with nothing to do are left out. A queue is unknown while the host's agent is
    of a release that doesn't report it. With --waiting: servers that asked to wait for room on a
    host, by the time of their arrival, with what each needs, the nearest host and what would make
    room; only the project's own, and no hosts, to those who are no administrators. They see the
    moves of drains that wait for room, too, which have no place.
    """

    in_all_regions = True

    arguments = (
        argument("--host", metavar="<host>", help="Only the queues of this host"),
        argument("--waiting", action="store_true", help="Servers that wait for room instead"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each queue, or each server that waits."""
        if parsed_args.waiting:
            return _WAITING_HEADERS, list(waiting_rows(self.cloud))
        asked = {"host": parsed_args.host} if parsed_args.host else {}
        return _HEADERS, [row for host in hosts_of(self.cloud, asked) for row in rows(host)]


def waiting_rows(cloud: Cloud) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of all pages: servers without a host, and then those that are to be moved."""
    asked: dict[str, str] = {}
    moves: Sequence[Mapping[str, Any]] = ()
    more = True
    while more:
        found = answer(cloud.compute.get("/waiting", params=asked))
        yield from map(waiting_row, found["waiting"])
        moves = moves or found.get("moves", ())
        more = "waiting_links" in found
        if more:
            asked = {"marker": str(found["waiting"][-1]["place"])}
    yield from map(move_row, moves)


def move_row(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of a server that a drain, or an evacuation, could not move yet."""
    nothing = Blank(None)
    return (
        one["action"],
        one["server_id"],
        one["project_id"],
        by_class(one["needs"]),
        one["availability_zone"] or nothing,
        one["since"],
        one["until"] or nothing,
        nothing,
        nothing,
        one["reason"] or nothing,
        nothing,
    )


def waiting_row(one: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the row of a server that waits."""
    nothing = Blank(None)
    return (
        one["place"],
        one["server_id"],
        one["project_id"],
        by_class(one["needs"]),
        one["availability_zone"] or nothing,
        one["since"],
        one["until"],
        one["overtaken"],
        one.get("kept_host") or nothing,
        room.nearest(one) or nothing,
        room.would_do(one) or nothing,
    )


def hosts_of(cloud: Cloud, asked: dict[str, str]) -> Iterator[Mapping[str, Any]]:
    """Yield the hosts of all pages, with health and queues."""
    more = True
    while more:
        found = answer(cloud.compute.get("/queues", params=asked))
        yield from found["hosts"]
        more = "hosts_links" in found
        if more:
            asked = {**asked, "marker": found["hosts"][-1]["id"]}


def rows(host: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Yield a host's rows."""
    nothing = Blank(None)
    if host["queues"] is None:
        yield (host["host"], UNKNOWN, *[nothing] * 6)
        return
    ago = f"{whole_seconds(host['reported_seconds_ago'])} ago"
    for queue in host["queues"]:
        oldest = queue["oldest_waiting_seconds"]
        yield (
            host["host"],
            queue["name"] if queue["kind"] == queue["name"] else f"storage {queue['name']}",
            "yes" if queue["shared"] else "no",
            queue["running"],
            queue["width"],
            queue["waiting"],
            nothing if oldest is None else whole_seconds(oldest),
            ago,
        )
