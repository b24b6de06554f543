"""Clients that create servers all the time, and what became of what they asked for.

with work(cloud) as what, creating(**what, prefix="x") as load:
    cloud.kill("conductor-1")
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
import time
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any

import requests

from tests.functional.client import Client, assert_nothing_is_left, statuses
from tests.functional.distributed import DistributedCloud
from tests.functional.waiting import eventually

#: how long anything that was asked for may take
WAIT_SECONDS = 300
_MADE = "ACTIVE"


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of what clients asked for."""

    accepted: int
    made: int
    errors: int
    """Requests that clients were refused, or not answered."""
    longest_seconds: float
    wrong: list[str]
    """Answers that were not true: what was refused and made, accepted and not made, or twice."""
    lost: int
    """Servers of the accepted ones that are missing, and may be."""


@dataclasses.dataclass
class Load:
    """What clients asked for, and what they were answered."""

    accepted: dict[str, str] = dataclasses.field(default_factory=dict)
    """{name: UUID}."""
    refused: dict[str, str] = dataclasses.field(default_factory=dict)
    """{name: the error that its client met}."""
    errors: list[str] = dataclasses.field(default_factory=list)
    """All errors, those of who only looks among them."""
    longest_seconds: float = 0.0
    """How long one of them waited for an answer at the most."""
    looks: int = 0

    def outcome(self, compute: Any, losable: Container[str] = ()) -> Outcome:
        """Return what became of it; nothing is being built any more.

        ``losable``: UUIDs of servers that may be missing.
        """
        found = _servers(compute)
        states = {one["name"]: one["status"] for one in found}
        times = Counter(one["name"] for one in found)
        lost = {n for n, uuid in self.accepted.items() if n not in states and uuid in losable}
        mine = {n: states.get(n, "missing") for n in self.accepted if n not in lost}
        wrong = [
            *(f"{name}: made, after {said}" for name, said in self.refused.items() if times[name]),
            *(f"{name}: accepted, and {state}" for name, state in mine.items() if state != _MADE),
            *(f"{name}: made {count} times" for name, count in times.items() if count > 1),
        ]
        made = sum(state == _MADE for state in mine.values())
        longest = round(self.longest_seconds, 1)
        accepted, errors = len(self.accepted), len(self.errors)
        return Outcome(accepted, made, errors, longest, wrong, len(lost))

    def building(self, compute: Any) -> bool:
        """Return whether something is being built still."""
        return "BUILD" in {one["status"] for one in _servers(compute)}

    def assert_no_errors(self) -> None:
        """Fail if any client met an error, or none got anything."""
        assert not self.errors, self.errors[:5]
        assert self.accepted

    def assert_made_once(self, compute: Any) -> None:
        """Fail unless there is one server of each name, that which its client was answered."""
        found = [(one["name"], one["id"]) for one in _servers(compute)]
        twice = [name for name, times in Counter(name for name, _ in found).items() if times > 1]
        assert not twice, f"created twice: {twice}"
        assert {name: uuid for name, uuid in found if name in self.accepted} == self.accepted

    def settled(self, compute: Any) -> bool:
        """Return whether nothing is being built any more. Fails for a build that failed."""
        states = {one["name"]: one["status"] for one in _servers(compute)}
        mine = {states.get(name, "missing") for name in self.accepted}
        assert mine <= {"ACTIVE", "BUILD"}, mine
        return mine == {"ACTIVE"}


@contextlib.contextmanager
def work(cloud: DistributedCloud) -> Iterator[dict[str, Any]]:
    """Give what `creating` needs to know; all servers are deleted in the end, and nothing of them
    may be left."""
    client = Client(cloud)
    yield {"url": cloud.url, "token": str(cloud.connection().auth_token), "body": client.body}
    for one in client.compute.servers(details=False):
        client.compute.delete_server(one.id)
    eventually(lambda: not statuses(client.compute), WAIT_SECONDS)
    assert_nothing_is_left(cloud)


def _servers(compute: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = compute.get("/servers/detail").json()["servers"]
    return found


@contextlib.contextmanager
def creating(
    url: str,
    token: str,
    body: dict[str, Any],
    prefix: str,
    clients: int = 3,
    pause: float = 0.5,
    verify: str | bool = True,
) -> Iterator[Load]:
    """Have clients create servers, and list them, until the block ends.

    `url` is that of the compute API, `body` what each server is made of.
    """
    load, stop, numbers = Load(), threading.Event(), itertools.count()

    def client() -> None:
        with requests.Session() as session:
            session.headers["X-Auth-Token"] = token
            session.trust_env, session.verify = False, verify
            while not stop.wait(pause):
                name = f"{prefix}-{next(numbers)}"
                asked = {"server": {**body, "name": name}}
                made = _ask(load, session, "POST", f"{url}/servers", asked)
                if isinstance(made, str):
                    load.refused[name] = made
                else:
                    load.accepted[name] = made["server"]["id"]
                seen = _ask(load, session, "GET", f"{url}/servers?limit=1")
                load.looks += not isinstance(seen, str)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield load
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _ask(load: Load, session: requests.Session, method: str, url: str, body: Any = None) -> Any:
    """Return the answer's body, or the error."""
    began = time.monotonic()
    try:
        answer = session.request(method, url, json=body, timeout=120)
        error = "" if answer.ok else f"{method}: {answer.status_code} {answer.text[:300]}"
    except requests.RequestException as failure:
        error = f"{method}: {failure}"
    load.longest_seconds = max(load.longest_seconds, time.monotonic() - began)
    if error:
        load.errors.append(error)
        return error
    return answer.json()
