"""Makes a volume type for each storage that takes disks."""

from __future__ import annotations

from collections.abc import Iterable

from common.log import logger
from common.messages.facts import HostFacts
from conductor.cloud import Cloud
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, types

LOG = logger(__name__)


class VolumeTypes:
    """Makes a volume type for each storage when a host reports it for the first time."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._known: frozenset[str] = frozenset()

    def on_facts(self, facts: Iterable[HostFacts]) -> None:
        """Take hosts' reports once they are stored. No query while no new storage is reported."""
        reported = {
            storage.name
            for host in facts
            for storage in host.storages
            if storage.active and "images" in storage.content
        }
        if not reported <= self._known:
            self.follow()
            self._known |= reported

    def follow(self) -> None:
        """Write what is missing. Two queries where nothing is."""

        def work(connection: Transaction) -> list[str]:
            return types.follow(connection, backends.read(connection))

        for name in self._cloud.store.run(work):
            LOG.info("Storage %s is a volume type now.", name)
