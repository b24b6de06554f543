"""What is known of the hosts: frozen snapshots for a decision, and the table behind them."""

from __future__ import annotations

import datetime
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from common.aggregates import AllAggregates
from common.messages.facts import Heartbeat, HostFacts
from scheduler import memberships
from scheduler.memberships import Memberships


@dataclass(frozen=True)
class Host:
    """One host as one decision sees it. Sizes in MiB and GiB; capacities include the ratios."""

    facts: HostFacts
    silent_seconds: float = 0.0
    """Since its agent was last heard."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    failures: float = 0.0
    """Builds that failed here of late, decaying."""
    memberships: Memberships = memberships.NONE
    """The aggregates that it is in."""

    @property
    def name(self) -> str:
        """The compute host's name."""
        return self.facts.host

    @property
    def zone(self) -> str:
        """Its availability zone: an aggregate's, else what the host says of itself."""
        return self.memberships.zone or self.facts.availability_zone

    def free(self, resource_class: str) -> int:
        """What is left of a resource class, in its unit."""
        return self.capacity.get(resource_class, 0) - self.used.get(resource_class, 0)

    def largest(self, resource_class: str) -> int:
        """The most that one server may have of a resource class: what is really there."""
        return self._really_there.get(resource_class, self.capacity.get(resource_class, 0))

    def room(self, resource_class: str) -> int:
        """The most of a resource class that one more server could have now, 0 or more."""
        return max(min(self.free(resource_class), self.largest(resource_class)), 0)

    @property
    def _really_there(self) -> Mapping[str, int]:
        facts = self.facts
        return {"VCPU": facts.vcpus, "MEMORY_MB": facts.memory_mib, "DISK_GB": facts.disk_gib}


#: how long after a scheduler's start its not knowing of any host says nothing
FIRST_NEWS_SECONDS = 15.0
#: builds that failed on a host count half after this time
FAILURE_HALF_LIFE_SECONDS = 600.0


@dataclass
class _Failures:
    score: float
    at: datetime.datetime


class HostTable:
    """Facts by resource provider, kept up to date by the agents' fanout; safe across threads."""

    def __init__(self, timer: Callable[[], float] = time.monotonic) -> None:
        self._timer, self._made_at = timer, timer()
        self._lock = threading.Lock()
        self._facts: dict[str, HostFacts] = {}
        self._seen: dict[str, datetime.datetime] = {}
        self._failures: dict[str, _Failures] = {}
        self._memberships: dict[str, Memberships] = {}
        self._version = -1

    @property
    def knows_aggregates(self) -> bool:
        """Whether anybody told of the aggregates yet."""
        return self._version >= 0

    @property
    def knows_hosts(self) -> bool:
        """Whether an agent told of its hosts yet; after a while there are none."""
        return bool(self._facts) or self._timer() - self._made_at > FIRST_NEWS_SECONDS

    def update_aggregates(self, told: AllAggregates) -> None:
        """Take over what the conductor tells; messages may overtake each other."""
        if told.version == self._version:
            return
        found = memberships.by_host(told.aggregates)
        with self._lock:
            if told.version > self._version:
                self._version, self._memberships = told.version, found

    def update(self, heartbeat: Heartbeat, now: datetime.datetime) -> None:
        """Take over what a worker tells of its hosts."""
        with self._lock:
            for facts in heartbeat.facts:
                self._facts[facts.uuid] = facts
            for host in heartbeat.hosts:
                self._seen[host] = now

    def note_failure(self, host: str, now: datetime.datetime) -> None:
        """A build failed there."""
        with self._lock:
            self._failures[host] = _Failures(self._decayed(host, now) + 1.0, now)

    def all(self, now: datetime.datetime) -> dict[str, Host]:
        """Every known host by provider UUID, without what placement knows."""
        with self._lock:
            return {
                uuid: Host(
                    facts,
                    self._silent(facts.host, now),
                    failures=self._decayed(facts.host, now),
                    memberships=self._memberships.get(facts.host, memberships.NONE),
                )
                for uuid, facts in self._facts.items()
            }

    def _silent(self, host: str, now: datetime.datetime) -> float:
        seen = self._seen.get(host)
        return float("inf") if seen is None else (now - seen).total_seconds()

    def _decayed(self, host: str, now: datetime.datetime) -> float:
        failures = self._failures.get(host)
        if failures is None:
            return 0.0
        age = (now - failures.at).total_seconds()
        return float(failures.score * 0.5 ** (age / FAILURE_HALF_LIFE_SECONDS))
