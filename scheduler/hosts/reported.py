"""The hosts as agents tell of them, kept up to date by their fanout; safe across threads."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from common.aggregates import AllAggregates
from common.messages.facts import Heartbeat, HostFacts
from scheduler.hosts import memberships
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.host_states import HostStates
from scheduler.hosts.memberships import Memberships
from scheduler.hosts.usage import NO_TRAITS

#: how long after a scheduler's start its not knowing of any host says nothing
FIRST_NEWS_SECONDS = 15.0
#: a host that is known for longer and isn't among the cloud's hosts is none of them any more
REGISTERED_SECONDS = 60.0
#: builds that failed on a host count half after this time
FAILURE_HALF_LIFE_SECONDS = 600.0


@dataclass
class _Failures:
    score: float
    at: datetime.datetime


class HostTable:
    """Facts of every host; decisions look at pictures of it, which never change."""

    def __init__(
        self,
        timer: Callable[[], float] = time.monotonic,
        heard_for: Callable[[], float] = lambda: np.inf,
    ) -> None:
        """``heard_for`` says for how many seconds agents could be heard without a gap: none was
        silent for longer."""
        self._heard_for = heard_for
        self._timer, self._made_at = timer, timer()
        self._lock = threading.Lock()
        self._states = HostStates([])
        self._news: dict[str, HostFacts] = {}
        self._seen: dict[str, float] = {}
        self._first: dict[str, float] = {}
        self._failures: dict[str, _Failures] = {}
        self._memberships: dict[str, Memberships] = {}
        self._aggregates = AllAggregates(-1)
        self._disabled: frozenset[str] = frozenset()
        self._forced_down: frozenset[str] = frozenset()

    @property
    def knows_aggregates(self) -> bool:
        """Whether anybody told of the aggregates yet."""
        return self._aggregates.version >= 0

    @property
    def knows_hosts(self) -> bool:
        """Whether an agent told of its hosts yet; after a while there are none."""
        told = bool(self._news) or len(self._states) > 0
        return told or self._timer() - self._made_at > FIRST_NEWS_SECONDS

    def update_aggregates(self, told: AllAggregates) -> None:
        """Take over what the conductor tells; messages may overtake each other."""
        with self._lock:
            if told.version < self._aggregates.version:
                return
            if told.version > self._aggregates.version:
                self._take_over(told)
            if told.hosts is not None:
                self._keep_only(frozenset(told.hosts))

    def _take_over(self, told: AllAggregates) -> None:
        """Only hosts that stand otherwise now are made anew, where the aggregates are the same."""
        old, self._aggregates = self._aggregates, told
        disabled, forced_down = frozenset(told.disabled), frozenset(told.forced_down)
        changed = (disabled ^ self._disabled) | (forced_down ^ self._forced_down)
        self._disabled, self._forced_down = disabled, forced_down
        facts = {host.facts.uuid: host.facts for host in self._states.hosts}
        if told.aggregates != old.aggregates:
            self._memberships = memberships.by_host(told.aggregates)
            self._states = HostStates([])
        else:
            facts = {uuid: one for uuid, one in facts.items() if one.host in changed}
        self._news = facts | self._news

    def _keep_only(self, names: frozenset[str]) -> None:
        """Forget hosts that the cloud has no more; it may not know those yet that are new."""
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
        """Take over what a worker tells of its hosts."""
        with self._lock:
            now = self._timer()
            for facts in heartbeat.facts:
                self._news[facts.uuid] = facts
                self._first.setdefault(facts.host, now)
            for host in heartbeat.hosts:
                self._seen[host] = now

    def note_failure(self, host: str, now: datetime.datetime) -> None:
        """A build failed there."""
        with self._lock:
            self._failures[host] = _Failures(self._decayed(host, now) + 1.0, now)

    def all(self, now: datetime.datetime) -> HostColumns:
        """Every known host, without what placement counts."""
        with self._lock:
            if self._news:
                self._states = self._states.with_hosts(map(self._host, self._news.values()))
                self._news = {}
            states, never = self._states, -np.inf
            seen = np.fromiter(
                (self._seen.get(host.name, never) for host in states.hosts),
                np.float64,
                len(states),
            )
            failures = np.zeros(len(states))
            for name in self._failures:
                if name in states.by_name:
                    failures[states.by_name[name]] = self._decayed(name, now)
        silent = self._timer() - seen
        return HostColumns(
            states,
            np.arange(len(states)),
            np.where(np.isneginf(seen), np.inf, np.minimum(silent, self._heard_for())),
            failures,
            {},
            [NO_TRAITS] * len(states),
        )

    def _host(self, facts: HostFacts) -> Host:
        return Host(
            facts,
            memberships=self._memberships.get(facts.host, memberships.NONE),
            disabled=facts.host in self._disabled,
            forced_down=facts.host in self._forced_down,
        )

    def _decayed(self, host: str, now: datetime.datetime) -> float:
        failures = self._failures.get(host)
        if failures is None:
            return 0.0
        age = (now - failures.at).total_seconds()
        return float(failures.score * 0.5 ** (age / FAILURE_HALF_LIFE_SECONDS))
