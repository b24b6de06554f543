"""Ends imports of images whose process has ended."""

from __future__ import annotations

from common import clock
from common.log import logger
from conductor.cloud import Cloud
from conductor.store.images import imports

LOG = logger(__name__)

#: a download that runs writes its progress more often than this
SILENT_SECONDS = 120.0
SECONDS = 30.0


class StaleImports:
    """Looks for data that were staged and left, and for downloads whose process has ended."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def look(self) -> None:
        """Set such images back to queued."""
        staged = clock.after(-float(self._cloud.conf.conductor.staged_image_seconds))
        renewed = clock.after(-SILENT_SECONDS)
        for image_id in self._cloud.store.run(lambda c: imports.expire(c, staged, renewed)):
            LOG.warning("Image %s is queued again: nobody went on with its import.", image_id)
