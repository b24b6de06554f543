"""The hosts as agents report them, kept up to date by fanout messages; thread-safe."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from common.messages.facts import Heartbeat, HostFacts
from common.resources.aggregates import AllAggregates
from scheduler.hosts import memberships
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import HostStates
from scheduler.hosts.memberships import Memberships
from scheduler.hosts.usage import TraitSets

#: for so long after its start a scheduler without hosts is taken to be uninformed
FIRST_NEWS_SECONDS = 15.0
#: a host that was first reported longer ago and isn't registered is dropped
REGISTERED_SECONDS = 60.0
#: half-life of the failures of a host
FAILURE_HALF_LIFE_SECONDS = 600.0


@dataclass
class _Failures:
    score: float
    at: datetime.datetime


class HostTable:
    """Facts of all hosts; decisions work on immutable snapshots of it."""

    def __init__(
        self,
        timer: Callable[[], float] = time.monotonic,
        bus_up_seconds: Callable[[], float] = lambda: np.inf,
    ) -> None:
        """``bus_up_seconds`` returns for how many seconds messages could be received without a
        gap: no agent counts as silent for longer."""
        self._bus_up_seconds = bus_up_seconds
        self._timer, self._made_at = timer, timer()
        self._lock = threading.Lock()
        self._states = HostStates([])
        self._news: dict[str, HostFacts] = {}
        self._seen: dict[str, float] = {}
        self._names: NDArray[np.object_] = self._states.names
        self._seen_by_row = np.empty(0)
        """When the hosts of ``_names`` were seen."""
        self._first: dict[str, float] = {}
        self._failures: dict[str, _Failures] = {}
        self._memberships: dict[str, Memberships] = {}
        self._aggregates = AllAggregates(-1)
        self._disabled: frozenset[str] = frozenset()
        self._forced_down: frozenset[str] = frozenset()

    @property
    def knows_aggregates(self) -> bool:
        """Whether the aggregates were received."""
        return self._aggregates.version >= 0

    @property
    def knows_hosts(self) -> bool:
        """Whether hosts were reported, or it is long enough ago that there are none."""
        is_ready = bool(self._news) or len(self._states) > 0
        return is_ready or self._timer() - self._made_at > FIRST_NEWS_SECONDS

    def update_aggregates(self, settings: AllAggregates) -> None:
        """Store the conductor's aggregates; messages that were overtaken are ignored."""
        with self._lock:
            if settings.version < self._aggregates.version:
                return
            if settings.version > self._aggregates.version:
                self._take_over(settings)
            if settings.hosts is not None:
                self._keep_only(frozenset(settings.hosts))

    def _take_over(self, settings: AllAggregates) -> None:
        """Store aggregates and disabled hosts; renew only hosts that these change."""
        old, self._aggregates = self._aggregates, settings
        disabled, forced_down = frozenset(settings.disabled), frozenset(settings.forced_down)
        changed = (disabled ^ self._disabled) | (forced_down ^ self._forced_down)
        self._disabled, self._forced_down = disabled, forced_down
        facts = {host.facts.uuid: host.facts for host in self._states.hosts}
        if (settings.aggregates, settings.cloud) != (old.aggregates, old.cloud):
            self._memberships = memberships.by_host(settings.aggregates)
            self._states = HostStates([])
        else:
            facts = {uuid: one for uuid, one in facts.items() if one.host in changed}
        self._news = facts | self._news

    def _keep_only(self, names: frozenset[str]) -> None:
        """Drop hosts that are not registered, unless they are new."""
        before = self._timer() - REGISTERED_SECONDS
        gone = {name for name, at in self._first.items() if name not in names and at <= before}
        if not gone:
            return
        kept = {host.facts.uuid: host.facts for host in self._states.hosts} | self._news
        self._news = {uuid: one for uuid, one in kept.items() if one.host not in gone}
        self._states = HostStates([])
        for name in gone:
            del self._first[name]
            self._seen.pop(name, None)
            self._failures.pop(name, None)

    def update(self, heartbeat: Heartbeat) -> None:
        """Store what a worker reports of its hosts."""
        with self._lock:
            now = self._timer()
            for facts in heartbeat.facts:
                self._news[facts.uuid] = facts
                self._first.setdefault(facts.host, now)
            rows = self._states.by_name if self._states.names is self._names else {}
            for host in heartbeat.hosts:
                self._seen[host] = now
                if host in rows:
                    self._seen_by_row[rows[host]] = now

    def note_failure(self, host: str, now: datetime.datetime) -> None:
        """Record that a build failed on a host."""
        with self._lock:
            self._failures[host] = _Failures(self._decayed(host, now) + 1.0, now)

    def all(self, now: datetime.datetime) -> HostColumns:
        """Return all hosts, without usage."""
        with self._lock:
            if self._news:
                self._states = self._states.with_hosts(map(self._host, self._news.values()))
                self._news = {}
            if self._states.names is not self._names:
                self._names = self._states.names
                self._seen_by_row = np.array(
                    [self._seen.get(name, -np.inf) for name in self._names], np.float64
                )
            states, seen = self._states, self._seen_by_row.copy()
            failures = np.zeros(len(states))
            for name in self._failures:
                if name in states.by_name:
                    failures[states.by_name[name]] = self._decayed(name, now)
        silent = self._timer() - seen
        return HostColumns(
            states,
            np.arange(len(states)),
            np.where(np.isneginf(seen), np.inf, np.minimum(silent, self._bus_up_seconds())),
            failures,
            {},
            TraitSets.unknown(len(states)),
        )

    def _host(self, facts: HostFacts) -> Host:
        return Host(
            facts,
            memberships=self._memberships.get(facts.host, memberships.NONE),
            disabled=facts.host in self._disabled,
            forced_down=facts.host in self._forced_down,
            cloud=self._aggregates.cloud,
        )

    def _decayed(self, host: str, now: datetime.datetime) -> float:
        failures = self._failures.get(host)
        if failures is None:
            return 0.0
        age = (now - failures.at).total_seconds()
        return float(failures.score * 0.5 ** (age / FAILURE_HALF_LIFE_SECONDS))
