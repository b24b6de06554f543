"""Keeps a volume type for each storage that takes disks."""

from __future__ import annotations

from common.log import logger
from conductor.cloud import Cloud
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, types

LOG = logger(__name__)

NAME = "volume_types"
SECONDS = 30.0


class VolumeTypes:
    """Looks for storages that hosts have and that have no type yet."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def follow(self) -> None:
        """Write what is missing. Two queries where nothing is."""

        def work(connection: Transaction) -> list[str]:
            return types.follow(connection, backends.read(connection))

        for name in self._cloud.store.run(work):
            LOG.info("Storage %s is a volume type now.", name)
