"""Caches images on the hosts of an aggregate, ahead of any build (microversion 2.81).

What is cached is a template to clone. It is reserved as for a build, and kept as long as its image
exists. Nothing is retried: a failure is logged, and the first build makes the template.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from common.context import RequestContext
from common.errors import HostNotFound, Invalid
from common.log import logger
from common.messages.commands import Image
from common.messages.facts import HostFacts
from common.resources import image_files
from conductor.cloud import Cloud
from conductor.images import cache_image, image_source
from conductor.store.hosts import aggregates, registry
from conductor.store.records import Operation
from conductor.store.transactions import Transaction

LOG = logger(__name__)


@dataclass(frozen=True)
class _Wanted:
    """One image that is not cached on a host."""

    facts: HostFacts
    image: Image


class Precache:
    """Asks agents to cache images."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def cache(self, ctxt: RequestContext, number: int, image_ids: Sequence[str]) -> None:
        """Begin on every host of an aggregate that is up.

        Raises NotFound, and Invalid, before anything is begun, if an image can't be cached on a
        host.
        """
        with self._cloud.store.read() as connection:
            wanted = list(self._missing(connection, number, image_ids))
        if not wanted:
            return

        def work(connection: Transaction) -> list[Operation | None]:
            return [
                cache_image.begin(connection, self._cloud, ctxt, one.facts, one.image)
                for one in wanted
            ]

        for one, begun in zip(wanted, self._cloud.store.run(work), strict=True):
            if begun is None:
                LOG.warning("Image %s is not cached: its template is being removed.", one.image.id)
            else:
                LOG.info("Image %s is being cached on %s.", one.image.id, one.facts.host)
        self._cloud.wake()

    def _missing(
        self, connection: Transaction, number: int, image_ids: Sequence[str]
    ) -> Iterator[_Wanted]:
        """Return what is to be cached. Raises Invalid if that is impossible."""
        refused: list[str] = []
        found: list[_Wanted] = []
        for name in aggregates.get(connection, number).hosts:
            try:
                facts, _ = registry.host(connection, name)
            except HostNotFound:
                continue
            worker = self._cloud.worker_of(connection, name)
            for image_id in image_ids:
                image = image_source.image(connection, image_id, facts)
                reason = _refusal(facts, image_id, image, self._cloud.id)
                if reason is not None:
                    refused.append(reason)
                elif worker is None:
                    LOG.warning("Image %s is not cached on %s: it is down.", image_id, name)
                elif image is not None and image_id not in facts.cached_images:
                    found.append(_Wanted(facts, image))
        if refused:
            raise Invalid(f"Images can't be cached: {'; '.join(refused)}.")
        yield from found


def _refusal(facts: HostFacts, image_id: str, image: Image | None, cloud: str) -> str | None:
    """Return why an image can never be cached on a host, or None."""
    if image_id in facts.cached_images:
        return None
    if image is None or image_id not in image_files.of_cloud(facts.images, cloud):
        return f"image {image_id} is on no storage of host {facts.host}"
    if image.cd:
        return f"image {image_id} is a CD, which is used where it lies"
    if not (facts.capabilities.get("linked_clone") or facts.capabilities.get("full_clone")):
        return f"host {facts.host} can't clone: it imports the image again for each server"
    return None
