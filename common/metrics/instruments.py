"""Counters, gauges and histograms: declared as data, made at their first use.

Nothing of prometheus_client is made before a value is recorded, as whether the workers of one
service share their values is decided by the environment when it is imported (see
``common.metrics.sharing``). A child is looked up by its label values in one dictionary: recording
takes about a microsecond.
"""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

#: label values, in the order of the labels
Labels = tuple[str, ...]
#: values of a gauge at the moment of a scrape
Samples = Mapping[Labels, float]
Source = Callable[[], Samples]

_making = threading.Lock()


@dataclass(frozen=True)
class Instrument:
    """One metric: its name, what it says, and its labels, whose values are bounded."""

    name: str
    text: str
    labels: tuple[str, ...] = ()
    _children: dict[Labels, Any] = field(
        default_factory=dict, repr=False, compare=False, kw_only=True
    )

    #: Prometheus' word for the type
    kind = "untyped"

    def _make(self) -> Any:
        """Return prometheus_client's object."""
        raise NotImplementedError

    def _child(self, values: Labels) -> Any:
        try:
            return self._children[values]
        except KeyError:
            return self._new_child(values)

    def _new_child(self, values: Labels) -> Any:
        if len(values) != len(self.labels):
            raise TypeError(f"{self.name} has the labels {self.labels}, not {values}")
        with _making:
            parent = _parents.get(self.name)
            if parent is None:
                _without_creation_times()
                parent = _parents[self.name] = self._make()
            child = parent.labels(*values) if values else parent
            self._children[values] = child
            return child


def _without_creation_times() -> None:
    """Leave out series that say when each other series began: nobody asks for them."""
    import prometheus_client

    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]


#: name → prometheus_client's object
_parents: dict[str, Any] = {}


@dataclass(frozen=True)
class Counter(Instrument):
    """What only grows; its name ends in ``_total``."""

    kind = "counter"

    def _make(self) -> Any:
        import prometheus_client

        return prometheus_client.Counter(self.name, self.text, self.labels)

    def count(self, *values: str, by: float = 1) -> None:
        """Add to the value with these labels."""
        self._child(values).inc(by)


@dataclass(frozen=True)
class Histogram(Instrument):
    """How often something took how long."""

    buckets: tuple[float, ...] = (0.025, 0.25, 2.5)

    kind = "histogram"

    def _make(self) -> Any:
        import prometheus_client

        return prometheus_client.Histogram(self.name, self.text, self.labels, buckets=self.buckets)

    def observe(self, seconds: float, *values: str) -> None:
        """Record one."""
        self._child(values).observe(seconds)

    @contextlib.contextmanager
    def timed(self, *values: str) -> Iterator[None]:
        """Record how long the block takes, however it ends."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._child(values).observe(time.perf_counter() - began)


@dataclass(frozen=True)
class Gauge(Instrument):
    """A value that may rise and fall, set or added to by the code that knows it."""

    added_up: bool = True
    """Of workers that share their values: their sum; else what one of them set last."""

    kind = "gauge"

    def _make(self) -> Any:
        import prometheus_client

        return prometheus_client.Gauge(
            self.name,
            self.text,
            self.labels,
            multiprocess_mode="livesum" if self.added_up else "livemostrecent",
        )

    def set(self, value: float, *values: str) -> None:
        """Set the value with these labels."""
        self._child(values).set(value)

    def add(self, by: float, *values: str) -> None:
        """Add to the value with these labels."""
        self._child(values).inc(by)


@dataclass(frozen=True)
class Sampled(Instrument):
    """What is asked for at each scrape, of every source that exists then.

    Sources are methods, and live as long as their objects. Not for workers that share values.
    """

    _sources: list[weakref.WeakMethod[Source]] = field(
        default_factory=list, repr=False, compare=False, kw_only=True
    )

    kind = "gauge"

    def watch(self, source: Source) -> None:
        """Ask this method, too."""
        with _making:
            self._sources[:] = [one for one in self._sources if one() is not None]
            self._sources.append(weakref.WeakMethod(source))

    def family(self) -> Metric | None:
        """Return all values; None: no source has any."""
        from prometheus_client.metrics_core import GaugeMetricFamily

        with _making:
            sources = [source for one in self._sources if (source := one()) is not None]
        found: dict[Labels, float] = {}
        for source in sources:
            for labels, value in source().items():
                found[labels] = found.get(labels, 0.0) + value
        if not found:
            return None
        family = GaugeMetricFamily(self.name, self.text, labels=self.labels)
        for labels, value in found.items():
            family.add_metric(labels, value)
        return family


def families(instruments: Iterable[Sampled]) -> Iterator[Metric]:
    """Yield what each of them has now."""
    for one in instruments:
        family = one.family()
        if family is not None:
            yield family
