"""Clients that create servers all the time, and what became of what they asked for."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import requests


@dataclasses.dataclass
class Load:
    """What clients asked for, and what they were answered."""

    accepted: dict[str, str] = dataclasses.field(default_factory=dict)
    """{name: UUID}."""
    errors: list[str] = dataclasses.field(default_factory=list)
    longest_seconds: float = 0.0
    """How long one of them waited for an answer at the most."""
    looks: int = 0

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


def _servers(compute: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = compute.get("/servers/detail").json()["servers"]
    return found


@contextlib.contextmanager
def creating(
    url: str, token: str, body: dict[str, Any], prefix: str, clients: int = 3, pause: float = 0.5
) -> Iterator[Load]:
    """Have clients create servers, and list them, until the block ends.

    `url` is that of the compute API, `body` what each server is made of.
    """
    load, stop, numbers = Load(), threading.Event(), itertools.count()

    def client() -> None:
        with requests.Session() as session:
            session.headers["X-Auth-Token"] = token
            while not stop.wait(pause):
                name = f"{prefix}-{next(numbers)}"
                asked = {"server": {**body, "name": name}}
                answer = _ask(load, session, "POST", f"{url}/servers", asked)
                if answer is not None:
                    load.accepted[name] = answer["server"]["id"]
                if _ask(load, session, "GET", f"{url}/servers?limit=1") is not None:
                    load.looks += 1

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
    began = time.monotonic()
    try:
        answer = session.request(method, url, json=body, timeout=120)
    except requests.RequestException as error:
        load.errors.append(f"{method}: {error}")
        return None
    load.longest_seconds = max(load.longest_seconds, time.monotonic() - began)
    if not answer.ok:
        load.errors.append(f"{method}: {answer.status_code} {answer.text[:300]}")
        return None
    return answer.json()
