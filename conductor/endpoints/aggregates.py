"""Host aggregates: what the API asks, and who else is told of them, and of how hosts are set.

Schedulers and agents are told by fanout, at each change and now and then, so that a lost message
heals. Placement is told after the transaction; what it did not take stays marked, and is told
again.
"""

from __future__ import annotations

from collections.abc import Callable

from common import context
from common.aggregates import AggregateFacts, AllAggregates, ratios
from common.context import RequestContext
from common.errors import Conflict, GenerationConflict, MicronovaError, NotFound
from common.log import logger
from conductor.cloud import Cloud
from conductor.engine.periodic import Periodic, Periodics
from conductor.images.cache_ahead import Precache
from conductor.store import aggregates as store
from conductor.store import placement_outbox, registry
from conductor.store.transactions import Transaction
from db.reads import aggregates as reads

LOG = logger(__name__)

#: the trait by which placement knows that a host is disabled, as Nova sets it
DISABLED_TRAIT = "COMPUTE_STATUS_DISABLED"
#: after this time schedulers are told again
TELL_SECONDS = 60.0
#: after this time placement is asked again to take what it did not take
RETRY_SECONDS = 10.0
#: the task that tells placement
PLACEMENT = "tell_placement"
#: hosts that placement is told of at a time
_AT_ONCE = 100


class AggregateEndpoint:
    """See ``conductor.rpc_api.AggregateRpc``."""

    def __init__(self, cloud: Cloud, notifier: Notifier) -> None:
        self._cloud = cloud
        self._notifier = notifier
        self._precache = Precache(cloud)

    def create_aggregate(self, ctxt: RequestContext, name: str, zone: str | None) -> int:
        """See ``ConductorClient.create_aggregate``."""
        number = self._cloud.store.run(lambda c: store.create(c, name, zone))
        self._notifier.spread(ctxt)
        return number

    def update_aggregate(
        self, ctxt: RequestContext, number: int, name: str | None, metadata: dict[str, str | None]
    ) -> None:
        """See ``ConductorClient.update_aggregate``."""
        self._change(ctxt, lambda c: store.update(c, number, name, metadata))

    def set_aggregate_metadata(
        self, ctxt: RequestContext, number: int, metadata: dict[str, str | None]
    ) -> None:
        """See ``ConductorClient.set_aggregate_metadata``."""
        self._change(ctxt, lambda c: store.set_metadata(c, number, metadata))

    def delete_aggregate(self, ctxt: RequestContext, number: int) -> None:
        """See ``ConductorClient.delete_aggregate``."""
        self._change(ctxt, lambda c: store.delete(c, number))

    def add_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """See ``ConductorClient.add_aggregate_host``."""
        self._change(ctxt, lambda c: store.add_host(c, number, host))

    def remove_aggregate_host(self, ctxt: RequestContext, number: int, host: str) -> None:
        """See ``ConductorClient.remove_aggregate_host``."""
        self._change(ctxt, lambda c: store.remove_host(c, number, host))

    def cache_images(self, ctxt: RequestContext, number: int, image_ids: list[str]) -> None:
        """See ``ConductorClient.cache_images``."""
        self._precache.cache(ctxt, number, image_ids)

    def _change(self, ctxt: RequestContext, work: Callable[[Transaction], None]) -> None:
        self._cloud.store.run(work)
        self._notifier.spread(ctxt)


class Notifier:
    """Tells schedulers, agents and placement of the aggregates."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._periodic = Periodics("notifier", cloud.store, cloud.name)
        self._periodic.add(Periodic("tell_aggregates", TELL_SECONDS, self._tell_again))
        self._periodic.add(Periodic(PLACEMENT, TELL_SECONDS, self._mirror_again))

    def start(self) -> None:
        """Tell now, and again now and then, what may have been missed."""
        self._periodic.start()

    def stop(self) -> None:
        """Tell no more."""
        self._periodic.stop(5)

    def spread(self, ctxt: RequestContext) -> None:
        """There is news: tell schedulers at once, placement as soon as it listens.

        What was committed stays so, whoever can't be told now.
        """
        try:
            self.tell(ctxt)
        except Exception:
            LOG.exception("Schedulers could not be told of the aggregates; again later.")
        self._periodic.wake(PLACEMENT)

    def tell(self, ctxt: RequestContext) -> None:
        """All aggregates, and how hosts are set, to every scheduler; ratios, to every agent. Who
        misses it hears it the next time."""
        with self._cloud.store.read() as connection:
            version = reads.version(connection)
            known = reads.list_aggregates(connection)
            standing = registry.standing(connection)
        told = tuple(AggregateFacts(a.uuid, a.name, a.metadata, a.hosts) for a in known)
        everything = AllAggregates(
            version,
            told,
            tuple(host for host, _, _ in standing),
            tuple(host for host, disabled, _ in standing if disabled),
            tuple(host for host, _, forced_down in standing if forced_down),
        )
        self._cloud.scheduler.update_aggregates(ctxt, everything)
        self._cloud.compute.update_ratios(ctxt, ratios(everything))

    def mirror(self) -> bool:
        """Placement: all hosts of which it isn't told; whether it has everything."""
        with self._cloud.store.read() as connection:
            untold = placement_outbox.untold(connection, _AT_ONCE)
        complete = len(untold) < _AT_ONCE
        for one in untold:
            try:
                if not self._tell_placement(one):
                    complete = False
                    continue
            except MicronovaError as error:
                LOG.warning("Placement isn't told of %s: %s", one.host, error.message)
                return False
            self._cloud.store.run(
                lambda c, one=one: placement_outbox.told(  # type: ignore[misc]
                    c, one.provider_uuid, one.host, one.version
                )
            )
        return complete

    def _tell_placement(self, told: placement_outbox.Mirrored) -> bool:
        """Aggregates and the trait of a disabled host, or that it is gone; False: not yet."""
        placement, uuid = self._cloud.placement, told.provider_uuid
        try:
            if told.disabled is None:
                placement.delete_provider(uuid)
                self._ask_back(uuid)
                return True
            placement.set_aggregates(uuid, told.uuids)
            change = placement.add_trait if told.disabled else placement.remove_trait
            change(uuid, DISABLED_TRAIT)
        except NotFound:
            # Its agent makes the provider; nobody may have heard that it went.
            self._ask_back(uuid)
            return not told.uuids and not told.disabled
        except GenerationConflict:
            raise
        except Conflict as error:
            LOG.warning("The provider of %s can't go yet: %s", told.host, error.message)
            return False
        return True

    def _ask_back(self, uuid: str) -> None:
        """A host that came back while its provider went makes it anew."""
        with self._cloud.store.read() as connection:
            worker = placement_outbox.worker_of(connection, uuid)
        if worker is not None:
            self._cloud.compute.introduce(context.internal(), worker)

    def _tell_again(self) -> None:
        self.tell(context.internal())

    def _mirror_again(self) -> float:
        complete = False
        try:
            complete = self.mirror()
        except Exception:
            LOG.exception("Placement could not be told of the aggregates; again later.")
        return TELL_SECONDS if complete else RETRY_SECONDS
