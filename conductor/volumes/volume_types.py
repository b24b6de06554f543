"""Keeps a volume type for each storage that takes disks."""

from __future__ import annotations

from common.log import logger
from conductor.cloud import Cloud
from conductor.store.transactions import Transaction
from conductor.store.volumes import backends, types

LOG = logger(__name__)

NAME = "volume_types"
SECONDS = 30.0
#: while no host is known
SOON_SECONDS = 1.0


class VolumeTypes:
    """Looks for storages that hosts have and that have no type yet."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def follow(self) -> float:
        """Write what is missing; return the seconds until the next look.

        Two queries where nothing is.
        """

        def work(connection: Transaction) -> tuple[list[str], bool]:
            found = backends.read(connection)
            return types.follow(connection, found), bool(found)

        made, any_host = self._cloud.store.run(work)
        for name in made:
            LOG.info("Storage %s is a volume type now.", name)
        return SECONDS if any_host else SOON_SECONDS
