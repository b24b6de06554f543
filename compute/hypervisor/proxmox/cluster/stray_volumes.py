"""Finds stray volumes on storages of other nodes: one listing serves all that wait for it.

A build may only trust a listing that began after it asked. So a build that asks during a listing
waits for the next one, together with all others: however many builds there are, each storage is
listed by one request at a time, and nothing is cached.
"""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.log import logger
from compute.hypervisor.port import HypervisorError, Work
from compute.hypervisor.proxmox.api.client import Client

LOG = logger(__name__)

#: storages that are listed at the same time
READERS = 8
#: What isn't listed by then is unseen: a node that hangs must not stop all other builds.
PATIENCE_SECONDS = 10.0

_CHECK_SECONDS = 0.5

Place = tuple[str, str]
"""(node, storage)"""
Listing = list[Mapping[str, Any]]


@dataclass
class _Look:
    """One listing, for all that asked before it began."""

    vmids: set[int] = field(default_factory=set)
    places: set[Place] = field(default_factory=set)
    over: bool = False
    listed: dict[Place, Listing] = field(default_factory=dict)


class StrayVolumes:
    """The listings of one cluster, thread-safe: one of the waiting threads lists for all."""

    def __init__(self, client: Client, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._client, self._patience_seconds = client, patience_seconds
        self._turn = threading.Condition()
        self._next: _Look | None = None
        self._running = False
        #: places that did not answer in time, and still don't
        self._late: dict[Place, concurrent.futures.Future[Listing]] = {}
        self._logged: frozenset[Place] = frozenset()

    def listed(self, work: Work, vmid: int, places: Collection[Place]) -> dict[Place, Listing]:
        """Return the disk images of a VMID on each of these places, if they could be listed.

        While waiting for others, raises what ``work.check`` raises.
        """
        if not places:
            return {}
        with self._turn:
            look = self._next = self._next or _Look()
            look.vmids.add(vmid)
            look.places.update(places)
            while not look.over and (self._running or self._next is not look):
                self._turn.wait(_CHECK_SECONDS)
                work.check()
            leads = not look.over
            if leads:
                self._next, self._running = None, True
        if leads:
            self._lead(look)
        return {
            place: [one for one in look.listed[place] if int(one.get("vmid") or 0) == vmid]
            for place in sorted(places)
            if place in look.listed
        }

    def _lead(self, look: _Look) -> None:
        try:
            look.listed = self._read(look)
        finally:
            with self._turn:
                look.over, self._running = True, False
                self._turn.notify_all()

    def _read(self, look: _Look) -> dict[Place, Listing]:
        # A single VMID is queried by number: that is cheaper where images are files.
        narrow = {"vmid": min(look.vmids)} if len(look.vmids) == 1 else {}
        self._late = {place: one for place, one in self._late.items() if not one.done()}
        readers = concurrent.futures.ThreadPoolExecutor(READERS, "compute-stray-volumes")
        began = {
            place: readers.submit(self._list, place, narrow)
            for place in sorted(look.places - self._late.keys())
        }
        readers.shutdown(wait=False)
        done, late = concurrent.futures.wait(began.values(), self._patience_seconds)
        # Those that were never begun wait for no node: the next listing begins them.
        self._late |= {
            place: one for place, one in began.items() if one in late and not one.cancel()
        }
        problems = dict.fromkeys(look.places, "no answer in time")
        listed = {}
        for place, one in began.items():
            error = one.exception() if one in done else None
            if isinstance(error, HypervisorError):
                problems[place] = error.message
            elif one in done:
                listed[place] = one.result()
                del problems[place]
        self._log(problems)
        return listed

    def _list(self, place: Place, narrow: Mapping[str, Any]) -> Listing:
        node, storage = place
        path = f"nodes/{node}/storage/{storage}/content"
        listed: Listing = self._client.get(path, content="images", **narrow)
        return listed

    def _log(self, problems: Mapping[Place, str]) -> None:
        """Log what is unseen when it changes, not for each build."""
        if problems.keys() != self._logged:
            self._logged = frozenset(problems)
            for (node, storage), why in sorted(problems.items()):
                LOG.warning("Storage %s on %s can't be listed: %s", storage, node, why)
