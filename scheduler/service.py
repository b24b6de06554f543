"""A scheduler process: its RPC servers, and the messages that ask for hosts and aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import stevedore
from oslo_config import cfg

from common import context, rpc
from common.context import RequestContext
from common.errors import ConfigurationError
from common.messages.topics import HOST_FACTS_TOPIC, SCHEDULER_TOPIC
from common.process import liveness, names
from common.process.health import Health
from common.rpc import events
from common.rpc.events import ConductorEvents, HostEvents, WorkerEvents
from common.rpc.messaging import oslo_messaging
from placement.client import PlacementClient
from scheduler import config, filters, weighers
from scheduler.decide.choose import Filter, Weigher
from scheduler.dry_run import DryRun
from scheduler.hosts import memberships
from scheduler.hosts.reported import HostTable
from scheduler.manager import HostFactsManager, SchedulerManager
from scheduler.rpc_api import SchedulerRpc
from scheduler.select import Decider
from scheduler.view import View

#: of other people's
FILTER_GROUP = "micronova.scheduler.filters"
WEIGHER_GROUP = "micronova.scheduler.weighers"


class SchedulerService:
    """Starts and stops one scheduler."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        transport: oslo_messaging.Transport,
        placement: PlacementClient,
        near: oslo_messaging.Transport | None = None,
    ) -> None:
        """``near``: where the conductor of this process asks; others ask by ``transport``."""
        self._conf = conf
        name = self._name = names.of(conf, "scheduler")
        self._beat = liveness.Beat(transport, "nova-scheduler", name)
        self.table = HostTable(bus_up_seconds=self._beat.hearing.for_seconds)
        self._conductor = events.to_conductor(transport)
        self._placement = placement
        view = View(placement, self.table, conf.scheduler.candidates)
        refusing, weighing = load_filters(conf), load_weighers(conf)
        manager: SchedulerRpc = SchedulerManager(
            Decider(conf, placement, view, refusing, weighing),
            DryRun(conf, view, refusing, weighing),
            self.table,
            self._ask,
        )
        listener: HostEvents = HostFactsManager(self.table)
        self._servers = [
            rpc.Server(transport, SCHEDULER_TOPIC, name, [manager]),
            rpc.Server(transport, HOST_FACTS_TOPIC, name, [listener], workers=1),
        ]
        if near is not None:
            self._servers.append(rpc.Server(near, SCHEDULER_TOPIC, name, [manager]))
        self._workers = events.to_workers(transport)

    @property
    def health(self) -> Health:
        """Live while it consumes messages; ready if placement answers and hosts have reported."""
        ready = {"bus": self._beat.bus, "placement": self._reaches, "hosts": self._knows}
        return Health({"messages": self._beat.consumes}, ready)

    def _reaches(self) -> bool:
        self._placement.ping()
        return True

    def _knows(self) -> bool:
        return self.table.knows_aggregates and self.table.knows_hosts

    def start(self) -> None:
        """Start to listen, and ask agents and conductor to report everything."""
        for server in self._servers:
            server.start()
        self._workers.cast(context.internal(), WorkerEvents.announce)
        self._ask(context.internal())
        self._beat.start()

    def _ask(self, ctxt: RequestContext) -> None:
        self._conductor.cast(ctxt, ConductorEvents.publish_aggregates)

    def stop(self) -> None:
        """Take no more requests, finish those taken."""
        self._beat.stop()
        for server in self._servers:
            server.stop()
        names.release(self._conf, "scheduler", self._name)


def load_filters(conf: cfg.ConfigOpts) -> dict[str, Filter]:
    """Return the configured filters, in order. Raises ConfigurationError for an unknown name."""
    own = filters.found()
    names = conf.scheduler.filters or list(own)
    return {name: own.get(name) or _load(FILTER_GROUP, name) for name in names}


def load_weighers(conf: cfg.ConfigOpts) -> Mapping[str, tuple[Weigher, float]]:
    """Return the configured weighers with their multipliers. Raises ConfigurationError."""
    asked = {name: _number(name, text) for name, text in conf.scheduler.weighers.items()}
    return {
        name: (weighers.found().get(name) or _load(WEIGHER_GROUP, name), multiplier)
        for name, multiplier in config.in_mode(conf.scheduler.mode, asked).items()
    }


def _load(group: str, name: str) -> Any:
    try:
        return stevedore.DriverManager(group, name).driver
    except stevedore.exception.NoMatches as error:
        kind = group.rpartition(".")[2].removesuffix("s")
        raise ConfigurationError(
            f"There is no {kind} {name}: neither micronova nor the entry points {group} have one."
        ) from error


def _number(name: str, text: str) -> float:
    found = memberships.number(text)
    if found is None:
        raise ConfigurationError(f"The multiplier of weigher {name} is no number: {text}")
    return found
