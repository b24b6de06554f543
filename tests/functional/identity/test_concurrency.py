"""Many clients at once: Keystone's writers queue on SQLite, and none is refused."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
import requests

from tests.functional.keystone_fixture import RunningKeystone

CLIENTS, ROUNDS = 8, 6
pytestmark = pytest.mark.timeout(900)


class Client:
    """An administrator that makes users and tokens, and counts the answers."""

    def __init__(self, keystone: RunningKeystone, token: str) -> None:
        self._keystone = keystone
        self._http = requests.Session()
        self._http.headers["X-Auth-Token"] = token
        self._token = token
        self.answers: Counter[int] = Counter()

    def work(self, number: int) -> None:
        """Make users, a token for each, and delete them."""
        for turn in range(ROUNDS):
            # Hashing takes longer than all the rest: every client makes one user who can log in.
            password = {"password": f"word-{number}"} if turn == 0 else {}
            user = {"name": f"user-{number}-{turn}", "domain_id": "default", **password}
            answer = self._ask("POST", "/users", {"user": user})
            if answer.status_code != 201:
                continue
            key = answer.json()["user"]["id"]
            identity = (
                {"methods": ["password"], "password": {"user": {"id": key, **password}}}
                if password
                else {"methods": ["token"], "token": {"id": self._token}}
            )
            self._ask("POST", "/auth/tokens", {"auth": {"identity": identity}})
            self._ask("PATCH", f"/users/{key}", {"user": {"email": "new@example.org"}})
            self._ask("GET", f"/users/{key}", None)
            self._ask("DELETE", f"/users/{key}", None)

    def close(self) -> None:
        self._http.close()

    def _ask(self, method: str, path: str, body: object) -> requests.Response:
        url = f"{self._keystone.auth_url}{path}"
        answer = self._http.request(method, url, json=body, timeout=60)
        self.answers[answer.status_code] += 1
        return answer


@pytest.fixture
def clients(keystone: RunningKeystone) -> Iterator[list[Client]]:
    token = keystone.token("admin", "admin")
    made = [Client(keystone, token) for _ in range(CLIENTS)]
    yield made
    for client in made:
        client.close()


def test_eight_clients_make_users_and_tokens(clients: list[Client]) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(Client.work, clients, range(CLIENTS)))
    answers = sum((client.answers for client in clients), Counter[int]())
    each = CLIENTS * ROUNDS
    assert answers == {201: 2 * each, 200: 2 * each, 204: each}


def test_readers_and_the_writer_do_not_wait_for_each_other(keystone: RunningKeystone) -> None:
    """The file has a write-ahead log: what is read is answered while another one writes."""
    path = keystone.state_dir / "keystone" / "keystone.db"
    token = keystone.token("admin", "admin")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        other.execute("BEGIN IMMEDIATE")
        answer = requests.get(
            f"{keystone.auth_url}/users", headers={"X-Auth-Token": token}, timeout=60
        )
        other.execute("ROLLBACK")
    assert answer.status_code == 200
