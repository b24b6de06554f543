"""Bulk migrations as commands show and steer them: drains and applied rebalances."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from cli.audits import answer
from cli.cloud import Cloud
from cli.command import Argument, OneOf, argument, flag, one_of
from cli.errors import CommandFailed

HEADERS = ("ID", "Name", "State", "Way", "From", "To", "Stage", "Reason")
FAILED = 1
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 0.5, 5.0
_ENDED = frozenset({"done", "failed"})
_PATH = "/bulk-migrations"

AT_ONCE = argument(
    "--at-once", metavar="<count>", type=int, default=2, help="Servers moved at the same time (2)"
)
WAIT = flag("--wait", help="Wait for the end, and show each server's stages")
STEERING = (
    flag("--pause", help="Begin no more moves for now; those under way end"),
    flag("--resume", help="Resume a paused bulk migration"),
    flag("--cancel", help="Begin no more moves, and end with those under way"),
    flag("--status", help="Show how far the last one is"),
)
_ACTIONS = ("pause", "resume", "cancel")


def choice(*more: Argument) -> OneOf:
    """Return a command's mutually exclusive options."""
    return one_of(*more, *STEERING)


def begin(cloud: Cloud, kind: str, **asked: Any) -> int:
    """Begin a bulk migration of this kind; return its id."""
    response = cloud.compute.post(_PATH, json={"bulk_migration": {kind: asked}})
    return int(answer(response)["bulk_migration"]["id"])


def steered(parsed_args: argparse.Namespace) -> bool:
    """Return whether the options are about a bulk migration that exists already."""
    return any(getattr(parsed_args, name) for name in ("status", *_ACTIONS))


def steer(cloud: Cloud, parsed_args: argparse.Namespace, action: str, host: str | None) -> int:
    """Pause, resume or cancel the latest bulk migration, as the options say; return its id.

    ``action`` is ``drain`` or ``rebalance``, ``host`` the host that a drain empties. Without such
    an option, as for ``--status``, nothing is changed.

    :raises CommandFailed: there is none.
    """
    query = {} if host is None else {"host": host}
    found = answer(cloud.compute.get(_PATH, params=query))["bulk_migrations"]
    number = next((int(one["id"]) for one in found if one["action"] == action), None)
    if number is None:
        raise CommandFailed(f"There was no {action}{f' of {host}' if host else ''}")
    for name in _ACTIONS:
        if getattr(parsed_args, name):
            from openstack.exceptions import raise_from_response

            raise_from_response(cloud.compute.post(f"{_PATH}/{number}/action", json={name: None}))
    return number


def get(cloud: Cloud, number: int) -> Mapping[str, Any]:
    """Return one with its moves."""
    found: Mapping[str, Any] = answer(cloud.compute.get(f"{_PATH}/{number}"))["bulk_migration"]
    return found


def until_over(cloud: Cloud, number: int, say: Callable[[str], None]) -> Mapping[str, Any]:
    """Wait until a bulk migration has ended, and return it.

    Until then, ``say`` is called with a line for each server whose state has changed.
    """
    shown: dict[str, str] = {}
    pause = _FIRST_PAUSE_SECONDS
    while True:
        found = get(cloud, number)
        for line in _news(found, shown):
            say(line)
        if found["state"] in _ENDED:
            return found
        cloud.pause(pause)
        pause = min(pause * 1.2, _LAST_PAUSE_SECONDS)


def rows(found: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return a row for each server."""
    keys = ("server", "name", "state", "way", "source", "target", "stage")
    return [
        (*(move[key] or "" for key in keys), move["reason"] or move["purpose"] or "")
        for move in found["moves"]
    ]


def summary(found: Mapping[str, Any]) -> str:
    """Return how it stands, in a line."""
    about = f" of {found['host']}" if found["host"] else ""
    asked = {"pause": ", paused", "cancel": ", cancelled"}.get(found["asked"], "")
    state = found["state"] if found["state"] in _ENDED else f"under way{asked}"
    return f"The {found['action']}{about} ({found['id']}) is {state}: {found['message']}"


def _news(found: Mapping[str, Any], shown: dict[str, str]) -> Iterator[str]:
    for move in found["moves"]:
        stage = f", {move['stage']}" if move["stage"] else ""
        why = f": {move['reason']}" if move["reason"] else ""
        text = f"{move['name']} ({move['server']}): {move['state']}{stage}{why}"
        if shown.get(move["server"]) != text:
            shown[move["server"]] = text
            yield text
