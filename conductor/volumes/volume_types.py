"""Keeps a volume type for each storage that takes disks."""

from __future__ import annotations

from collections.abc import Iterable

from common.log import logger
from common.messages.facts import HostFacts
from conductor.cloud import Cloud
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, types

LOG = logger(__name__)


class VolumeTypes:
    """Has a type written for each storage that a host tells of for the first time."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._known: frozenset[str] = frozenset()

    def heard(self, facts: Iterable[HostFacts]) -> None:
        """Take what hosts tell, once it is stored; nothing is asked while they tell no news."""
        told = {
            storage.name
            for host in facts
            for storage in host.storages
            if storage.active and "images" in storage.content
        }
        if not told <= self._known:
            self.follow()
            self._known |= told

    def follow(self) -> None:
        """Write what is missing. Two queries where nothing is."""

        def work(connection: Transaction) -> list[str]:
            return types.follow(connection, backends.read(connection))

        for name in self._cloud.store.run(work):
            LOG.info("Storage %s is a volume type now.", name)
