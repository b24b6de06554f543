"""Counters, histograms and gauges: made when they are used, with the labels that they have."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from common.metrics import exposition, instruments
from common.metrics.instruments import Counter, Gauge, Histogram, Sampled, Samples, families


@pytest.fixture(autouse=True)
def _forgotten() -> Iterator[None]:
    """Other tests of this process expose the program's metrics only."""
    before = set(instruments._parents)
    yield
    for name in set(instruments._parents) - before:
        REGISTRY.unregister(instruments._parents.pop(name))


def test_nothing_is_there_before_it_is_used() -> None:
    unused = Counter("test_unused_total", "t", ("a",))
    assert unused.name.encode() not in exposition.text()
    unused.count("x", by=2)
    unused.count("x")
    assert REGISTRY.get_sample_value("test_unused_total", {"a": "x"}) == 3


def test_a_histogram_records_how_long_a_block_takes_also_one_that_fails() -> None:
    seconds = Histogram("test_seconds", "t", ("a",), (1.0, 2.0))
    with pytest.raises(ValueError, match="no"), seconds.timed("x"):
        raise ValueError("no")
    seconds.observe(1.5, "x")
    of = {"a": "x"}
    assert REGISTRY.get_sample_value("test_seconds_count", of) == 2
    assert REGISTRY.get_sample_value("test_seconds_bucket", {**of, "le": "1.0"}) == 1


def test_a_gauge_goes_up_and_down() -> None:
    gauge = Gauge("test_gauge", "t")
    gauge.set(3)
    gauge.add(-1)
    assert REGISTRY.get_sample_value("test_gauge") == 2


def test_wrong_labels_are_refused() -> None:
    with pytest.raises(TypeError, match="test_labels_total has the labels"):
        Counter("test_labels_total", "t", ("a", "b")).count("x")


@pytest.mark.parametrize("text", ["a\nb 9", 'a"} 9\nforged{x="', "a\\n", "a\r\nb", "é,#"])
def test_a_label_forges_no_line(text: str) -> None:
    Counter("test_forged_total", "t", ("a",)).count(text)
    shown = exposition.text().decode()
    [line] = [one for one in shown.split("\n") if one.startswith("test_forged_total{")]
    [sample] = next(iter(text_string_to_metric_families(f"{line}\n"))).samples
    assert (sample.labels, sample.value) == ({"a": text}, 1)


class Source:
    """Has a value for as long as it lives."""

    def __init__(self, value: float) -> None:
        self.value = value

    def sample(self) -> Samples:
        return {("x",): self.value}


def test_sources_add_up_and_are_forgotten_when_they_are_gone() -> None:
    sampled = Sampled("test_sampled", "t", ("a",))
    one, other = Source(1), Source(2)
    sampled.watch(one.sample)
    sampled.watch(other.sample)
    [family] = families([sampled])
    assert [(one.labels, one.value) for one in family.samples] == [({"a": "x"}, 3)]
    del other
    gc.collect()
    [family] = families([sampled])
    assert family.samples[0].value == 1
    del one
    gc.collect()
    assert list(families([sampled])) == []
