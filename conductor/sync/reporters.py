"""Which worker may report on which hosts, where the broker vouches for who sent a message.

A worker speaks for the hosts that the record has with it, and for the clusters of these. It takes
over a host that is new, that a lease of the agents gave it, or whose worker has been silent for
``host_down_seconds``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from common import clock
from common.errors import Forbidden
from common.messages.tenures import worker_of
from common.rpc import senders
from conductor.store.hosts import registry
from conductor.store.transactions import Store

#: the record is read again after so long, and for what it refuses a user no more often than that
READ_SECONDS, AGAIN_SECONDS = 30.0, 1.0


class Carried(NamedTuple):
    """A host in the record."""

    worker: str | None
    """Its name alone, whatever its tenure."""
    cluster: str | None
    last_seen_at: Any


class Reporters:
    """Checks what compute workers report. Threads may share it."""

    def __init__(
        self, store: Store, down_seconds: float, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._down_seconds, self._timer = store, down_seconds, timer
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._read_for: dict[str, float] = {}
        self._hosts: dict[str, Carried] = {}

    def check_hosts(self, user: str | None, hosts: Collection[str]) -> None:
        """Raise Forbidden where a worker reports on hosts that are another one's."""
        self._check(user, hosts, self._is_another_s)

    def check_claim(self, user: str | None, hosts: Collection[str]) -> None:
        """Raise Forbidden where a worker claims hosts of another worker, which lives."""
        self._check(user, hosts, self._is_another_s_that_lives)

    def check_cluster(self, user: str | None, cluster: str) -> None:
        """Raise Forbidden where a worker reports on a cluster without having a host in it."""
        self._check(user, [cluster], self._has_none_of)

    def _check(
        self, user: str | None, named: Collection[str], refuses: Callable[[str, str], bool]
    ) -> None:
        role, worker = senders.sender_of(user)
        if role != senders.COMPUTE or worker is None:
            return
        if self._timer() - self._read_at >= READ_SECONDS:
            self._read()
        if any(refuses(worker, one) for one in named):
            self._read_again(worker)
        refused = sorted(one for one in named if refuses(worker, one))
        if refused:
            raise Forbidden(f"{user} may not report on {', '.join(refused)}.")

    def _is_another_s(self, worker: str, host: str) -> bool:
        found = self._hosts.get(host)
        return found is None or found.worker != worker

    def _is_another_s_that_lives(self, worker: str, host: str) -> bool:
        found = self._hosts.get(host)
        if found is None or found.worker in (None, worker) or found.last_seen_at is None:
            return False
        return bool(found.last_seen_at >= clock.after(-self._down_seconds))

    def _has_none_of(self, worker: str, cluster: str) -> bool:
        return not any(
            one.worker == worker and one.cluster == cluster for one in self._hosts.values()
        )

    def _read_again(self, worker: str) -> None:
        """Read the record for a worker that it refuses, unless it was just read for that one.

        So a worker that was given hosts a moment ago is not refused by what was read before.
        """
        now = self._timer()
        with self._lock:
            if now - self._read_for.get(worker, float("-inf")) < AGAIN_SECONDS:
                return
            self._read_for[worker] = now
        self._read()

    def _read(self) -> None:
        with self._lock:
            with self._store.read() as connection:
                found = registry.carried(connection)
            self._hosts = {
                host: Carried(worker and worker_of(worker), cluster, seen_at)
                for host, (worker, cluster, seen_at) in found.items()
            }
            self._read_at = self._timer()
