"""What the statistics daemon has seen of each VMID: when its VM ran, and how large it was.

Proxmox VE stores round-robin data by VMID: it is still there after the VM is removed, and a later
VM of the same number continues it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from simulator.state.model import Vm

#: changes of one VMID; those before are forgotten
MOST = 60
_SIZES = ("cores", "sockets", "vcpus", "memory")


@dataclass(frozen=True)
class Span:
    """One state of a VMID, from ``since`` to the next one's begin."""

    since: float
    exists: bool
    running: bool = False
    sizes: dict[str, str] = field(default_factory=dict)
    """The options of its configuration that say how large the VM is."""


class History:
    """The spans of all VMIDs of a cluster. The cluster's mutex guards it."""

    def __init__(self) -> None:
        self._spans: dict[int, list[Span]] = {}

    def see(self, vmid: int, vm: Vm | None) -> list[dict[str, Any]] | None:
        """Note how a VM is now, None: it is removed. Return all spans; None: nothing changed."""
        config = {} if vm is None else vm.config
        sizes = {name: config[name] for name in _SIZES if name in config}
        now = Span(time.time(), vm is not None, vm is not None and vm.running, sizes)
        spans = self._spans.setdefault(vmid, [])
        if spans and (spans[-1].exists, spans[-1].running, spans[-1].sizes) == (
            now.exists,
            now.running,
            now.sizes,
        ):
            return None
        spans.append(now)
        del spans[:-MOST]
        return [asdict(one) for one in spans]

    def restore(self, vmid: int, saved: list[dict[str, Any]]) -> None:
        """Take over what an earlier process saved."""
        self._spans[vmid] = [Span(**one) for one in saved]

    def shift(self, vmid: int, seconds: float) -> list[dict[str, Any]]:
        """Let all that is known of a VMID have happened earlier; return what is to be saved."""
        spans = [replace(one, since=one.since - seconds) for one in self._spans.get(vmid, ())]
        self._spans[vmid] = spans
        return [asdict(one) for one in spans]

    def knows(self, vmid: int) -> bool:
        """Return whether there ever was a VM of this number."""
        return vmid in self._spans

    def overlapping(self, vmid: int, begin: float, end: float) -> Iterator[tuple[float, Span]]:
        """Yield the spans of a VMID between two times, with the seconds of each."""
        spans = self._spans.get(vmid, [])
        ends = [one.since for one in spans[1:]] + [end]
        for span, until in zip(spans, ends, strict=True):
            seconds = min(until, end) - max(span.since, begin)
            if seconds > 0:
                yield seconds, span
