"""Keeps placement told of what hosts offer: one thread, only changes, until it is accepted."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from common.errors import Conflict, GenerationConflict, MicronovaError
from common.log import logger
from common.messages.facts import HostFacts
from compute import inventory

LOG = logger(__name__)

RETRY_SECONDS = 5.0

Offer = tuple[str, dict[str, dict[str, Any]], frozenset[str]]


class Placement(Protocol):
    """What is used of ``placement.client.PlacementClient``."""

    def ensure_provider(self, uuid: str, name: str) -> Any:
        """Have the resource provider."""

    def ensure_resource_class(self, name: str) -> None:
        """Have a custom resource class."""

    def inventories(self, uuid: str) -> Mapping[str, Mapping[str, Any]]:
        """Its inventories."""

    def set_inventory(self, uuid: str, inventories: Mapping[str, Mapping[str, Any]]) -> Any:
        """Replace its inventories."""

    def traits(self, uuid: str) -> frozenset[str]:
        """Its traits."""

    def set_traits(self, uuid: str, traits: Iterable[str]) -> Any:
        """Replace its traits."""


class Publisher:
    """The thread and what it still has to tell."""

    def __init__(self, placement: Placement, retry_seconds: float = RETRY_SECONDS) -> None:
        self._placement, self._retry_seconds = placement, retry_seconds
        self._changed = threading.Condition()
        self._pending: dict[str, HostFacts] = {}
        self._told: dict[str, Offer] = {}
        self._doubted: set[str] = set()
        self._classes: set[str] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._loop, name="compute-publisher", daemon=True)

    def start(self) -> None:
        """Begin to publish."""
        self._thread.start()

    def stop(self) -> None:
        """Publish no more."""
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
        """Queue hosts whose resource providers may have gone."""
        doubted = list(hosts)
        with self._changed:
            self._doubted.update(facts.uuid for facts in doubted)
        self.publish(doubted)

    def _loop(self) -> None:
        while (facts := self._next()) is not None:
            try:
                self._tell(facts)
            except MicronovaError as error:
                LOG.warning("Placement did not take %s: %s", facts.host, error.message)
                self._later(facts)
            except Exception:
                LOG.exception("Telling placement of %s broke.", facts.host)
                self._later(facts)

    def _next(self) -> HostFacts | None:
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._closed)
            if self._closed:
                return None
            facts = self._pending.pop(next(iter(self._pending)))
            if facts.uuid in self._doubted:
                self._doubted.discard(facts.uuid)
                self._told.pop(facts.uuid, None)
            return facts

    def _later(self, facts: HostFacts) -> None:
        self._classes.clear()
        with self._changed:
            self._pending.setdefault(facts.uuid, facts)
            self._changed.wait_for(lambda: self._closed, timeout=self._retry_seconds)

    def _tell(self, facts: HostFacts) -> None:
        offer = (facts.host, inventory.inventories(facts), inventory.traits(facts))
        if self._told.get(facts.uuid) == offer:
            return
        self._told.pop(facts.uuid, None)
        self._placement.ensure_provider(facts.uuid, facts.host)
        for name in sorted(offer[1].keys() - self._classes):
            if name.startswith("CUSTOM_"):
                self._placement.ensure_resource_class(name)
            self._classes.add(name)
        gone_in_use = not self._set(facts.uuid, offer[1])
        present = self._placement.traits(facts.uuid)
        wanted = inventory.with_kept(offer[2], present)
        if wanted != present:
            self._placement.set_traits(facts.uuid, wanted)
        if not gone_in_use:
            self._told[facts.uuid] = offer

    def _set(self, uuid: str, offered: Mapping[str, Mapping[str, Any]]) -> bool:
        """Have these inventories; whether all others are gone.

        What is gone from the host and yet promised to somebody can't go; nobody else gets it.
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
