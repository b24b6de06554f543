"""Publishes hosts' inventories to placement: only changes, several at a time, with retries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

from common import host_traits
from common.errors import Conflict, GenerationConflict, MicronovaError
from common.log import logger
from common.messages.facts import HostFacts
from compute.observed import inventory
from placement.messages import NewProvider, Provider

LOG = logger(__name__)

RETRY_SECONDS = 5.0
#: hosts published at the same time: mostly they wait for placement
AT_ONCE = 4
#: hosts of one batch; later changes wait for its end
BATCH = 200
#: number of hosts from which on one list of all providers is cheaper than a request each
MANY = 8


class Offer(NamedTuple):
    """What is published of a host to placement."""

    name: str
    inventories: Mapping[str, Mapping[str, Any]]
    traits: frozenset[str]


class Placement(Protocol):
    """The part of ``placement.client.PlacementClient`` that is used."""

    def providers(self) -> Sequence[Provider]:
        """List all resource providers."""

    def ensure_provider(self, uuid: str, name: str) -> Any:
        """Make sure that a resource provider exists and has this name."""

    def add_provider(
        self,
        uuid: str,
        name: str,
        inventories: Mapping[str, Mapping[str, Any]],
        traits: Iterable[str],
    ) -> None:
        """Create a resource provider with all it has."""

    def add_providers(self, providers: Sequence[NewProvider]) -> frozenset[str] | None:
        """Create resource providers with all they have; None: one at a time only."""

    def ensure_resource_class(self, name: str) -> None:
        """Make sure that a custom resource class exists."""

    def inventories(self, uuid: str) -> Mapping[str, Mapping[str, Any]]:
        """Return a provider's inventories."""

    def set_inventory(self, uuid: str, inventories: Mapping[str, Mapping[str, Any]]) -> Any:
        """Replace a provider's inventories."""

    def change_traits(self, uuid: str, change: Callable[[frozenset[str]], Iterable[str]]) -> Any:
        """Replace a provider's traits by what `change` makes of them."""


class Publisher:
    """A queue of hosts whose offers changed, and the threads that publish them."""

    def __init__(self, placement: Placement, retry_seconds: float = RETRY_SECONDS) -> None:
        self._placement, self._retry_seconds = placement, retry_seconds
        self._changed = threading.Condition()
        self._pending: dict[str, HostFacts] = {}
        self._published: dict[str, Offer] = {}
        self._doubted: set[str] = set()
        self._classes: set[str] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="compute-publisher", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self) -> None:
        """Stop publishing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join(5)

    def publish(self, hosts: Iterable[HostFacts]) -> None:
        """Queue hosts whose facts changed; returns at once."""
        with self._changed:
            self._pending.update({facts.uuid: facts for facts in hosts if facts.vcpus > 0})
            self._changed.notify_all()

    def publish_again(self, hosts: Iterable[HostFacts]) -> None:
        """Queue hosts whose resource providers may be gone."""
        doubted = list(hosts)
        with self._changed:
            self._doubted.update(facts.uuid for facts in doubted)
        self.publish(doubted)

    def forget(self) -> None:
        """Publish everything again: others may have published the hosts in between."""
        with self._changed:
            self._published.clear()
            self._pending.clear()

    def _loop(self) -> None:
        while self._await_pending():
            failed = self._publish_all()
            if failed:
                self._retry_later(failed)

    def _await_pending(self) -> bool:
        """Wait until there is something to publish; return False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._closed)
            return not self._closed

    def _publish_all(self) -> list[HostFacts]:
        """Publish batches until nothing is pending; return the hosts that failed."""
        failed: list[HostFacts] = []
        names: dict[str, str] | None = None
        with ThreadPoolExecutor(AT_ONCE, "compute-publish") as pool:
            while not self._closed:
                names = self._check_doubted() or names
                batch = self._next_batch()
                if not batch:
                    break
                if names is None and len(batch) >= MANY:
                    names = self._provider_names()
                if names is not None:
                    batch = self._without_created(batch, names)
                tries = pool.map(lambda facts, known=names: self._tried(facts, known), batch)
                failed += [facts for facts, done in zip(batch, tries, strict=True) if not done]
        return failed

    def _check_doubted(self) -> dict[str, str] | None:
        """Queue hosts whose providers may be gone.

        Of many, only those that placement doesn't list unchanged; returns that list.
        """
        with self._changed:
            doubted, self._doubted = self._doubted, set()
        names = self._provider_names() if len(doubted) >= MANY else None
        for uuid in doubted:
            offer = self._published.get(uuid)
            if offer is not None and (names is None or names.get(uuid) != offer.name):
                del self._published[uuid]
        return names

    def _next_batch(self) -> list[HostFacts]:
        """Take the next hosts whose offers placement doesn't have; none at the end."""
        batch: list[HostFacts] = []
        with self._changed:
            while self._pending and len(batch) < BATCH and not self._closed:
                facts = self._pending.pop(next(iter(self._pending)))
                if self._published.get(facts.uuid) != _offer(facts):
                    batch.append(facts)
        return batch

    def _without_created(self, batch: list[HostFacts], names: dict[str, str]) -> list[HostFacts]:
        """Create the providers of new hosts together; return the other hosts.

        Created ones are added to `names`.
        """
        offers = {facts.uuid: _offer(facts) for facts in batch if facts.uuid not in names}
        if len(offers) < MANY:
            return batch
        new = [
            NewProvider(uuid, name, offered, inventory.with_kept(traits, frozenset()))
            for uuid, (name, offered, traits) in offers.items()
        ]
        try:
            for offer in offers.values():
                self._ensure_classes(offer)
            created = self._placement.add_providers(new) or frozenset()
        except MicronovaError as error:
            LOG.info("Hosts are published one by one: %s", error.message)
            return batch
        self._published.update({uuid: offers[uuid] for uuid in created})
        names.update({uuid: offers[uuid].name for uuid in created})
        return [facts for facts in batch if facts.uuid not in created]

    def _ensure_classes(self, offer: Offer) -> None:
        """Make sure that the custom resource classes of an offer exist."""
        for name in sorted(offer.inventories.keys() - self._classes):
            if name.startswith("CUSTOM_"):
                self._placement.ensure_resource_class(name)
            self._classes.add(name)

    def _provider_names(self) -> dict[str, str] | None:
        """Return the names of all providers by UUID; None if they can't be listed."""
        try:
            return {one.uuid: one.name for one in self._placement.providers()}
        except MicronovaError:
            return None  # each host says what is wrong

    def _retry_later(self, failed: Iterable[HostFacts]) -> None:
        self._classes.clear()
        with self._changed:
            for facts in failed:
                self._pending.setdefault(facts.uuid, facts)
            self._changed.wait_for(lambda: self._closed, timeout=self._retry_seconds)

    def _tried(self, facts: HostFacts, names: Mapping[str, str] | None) -> bool:
        """Publish a host; return whether that succeeded."""
        if self._closed:
            return False
        try:
            self._publish(facts, names)
        except MicronovaError as error:
            LOG.warning("Placement did not take %s: %s", facts.host, error.message)
        except Exception:
            LOG.exception("Publishing %s to placement failed unexpectedly.", facts.host)
        else:
            return True
        return False

    def _publish(self, facts: HostFacts, names: Mapping[str, str] | None) -> None:
        """Make placement have a host's offer; `names` of the providers save a request."""
        offer = _offer(facts)
        self._published.pop(facts.uuid, None)
        self._ensure_classes(offer)
        if names is not None and facts.uuid not in names:
            try:
                traits = inventory.with_kept(offer.traits, frozenset())
                self._placement.add_provider(facts.uuid, offer.name, offer.inventories, traits)
            except Conflict:
                pass  # it was made, or changed, since the list was
            else:
                self._published[facts.uuid] = offer
                return
        if names is None or names.get(facts.uuid) != offer.name:
            self._placement.ensure_provider(facts.uuid, offer.name)
        all_gone = self._set_inventories(facts.uuid, offer.inventories)
        self._placement.change_traits(
            facts.uuid, lambda there: inventory.with_kept(offer.traits, there)
        )
        if all_gone:
            self._published[facts.uuid] = offer

    def _set_inventories(self, uuid: str, offered: Mapping[str, Mapping[str, Any]]) -> bool:
        """Replace a provider's inventories; return whether all others are gone.

        What the host lost but is still allocated can't be removed; it is reserved instead.
        """
        try:
            self._placement.set_inventory(uuid, offered)
        except GenerationConflict:
            raise
        except Conflict:
            there = self._placement.inventories(uuid)
            left = {
                name: {**record, "reserved": record["total"]}
                for name, record in there.items()
                if name not in offered
            }
            self._placement.set_inventory(uuid, {**offered, **left})
            return False
        return True


def _offer(facts: HostFacts) -> Offer:
    return Offer(facts.host, inventory.inventories(facts), host_traits.traits(facts))
