"""Limits of a project over regions: their sum never passes the total, whatever fails."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.admin.quota_spread import Limit, Quotas, apply, shares
from cli.cloud import Cloud
from cli.errors import CommandFailed

Limits = dict[str, list[int]]


class FakeQuotas(Quotas):
    """Limits as numbers; ``fails`` is the number of the change that fails."""

    def __init__(self, limits: Limits, fails: int | None = None) -> None:
        super().__init__({}, "p1")
        self.limits, self.fails = limits, fails
        self.sums = [self.sum()]

    def sum(self) -> float:
        values = [limit for limit, _ in self.limits.values()]
        return float("inf") if -1 in values else sum(values)

    def read(self, resource: str) -> dict[str, Limit]:
        return {name: Limit(*values) for name, values in self.limits.items()}

    def set(self, region: str, resource: str, limit: int) -> None:
        if len(self.sums) == self.fails:
            raise CommandFailed("the region is gone")
        self.limits[region][0] = limit
        self.sums.append(self.sum())


_REGION = st.tuples(st.integers(-1, 50), st.integers(0, 50)).map(list)
_REGIONS = st.dictionaries(st.sampled_from("abcdef"), _REGION, min_size=1)


@given(_REGIONS, st.integers(0, 200), st.none() | st.integers(1, 12))
def test_the_sum_never_passes_the_total(limits: Limits, total: int, fails: int | None) -> None:
    used = {name: in_use for name, (_, in_use) in limits.items()}
    quotas = FakeQuotas({name: list(one) for name, one in limits.items()}, fails)
    if sum(used.values()) > total:
        with pytest.raises(CommandFailed, match="in use already"):
            shares(total, used)
        return
    wanted = shares(total, used)
    assert sum(wanted.values()) == total
    assert all(wanted[name] >= in_use for name, in_use in used.items())
    try:
        apply(quotas, "cores", wanted)
    except CommandFailed:
        assert fails is not None
        # Carried out again it continues.
        quotas.fails = None
        apply(quotas, "cores", wanted)
    assert {name: limit for name, (limit, _) in quotas.limits.items()} == wanted
    for before, after in zip(quotas.sums, quotas.sums[1:], strict=False):
        assert after <= max(before, total)


def test_nothing_is_raised_while_somebody_else_raises() -> None:
    quotas = FakeQuotas({"a": [10, 0], "b": [2, 0]})
    changed = quotas.set

    def other(region: str, resource: str, limit: int) -> None:
        changed(region, resource, limit)
        quotas.limits["a"][0] = 50

    quotas.set = other  # type: ignore[method-assign]
    with pytest.raises(CommandFailed, match="another change"):
        apply(quotas, "cores", {"a": 5, "b": 5})
    assert quotas.limits["b"] == [2, 0]


class Api:
    """The quotas of one region's compute and block storage APIs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.put_bodies = error, list[Any]()

    def get(self, path: str, params: Any) -> Any:
        if self.error is not None:
            raise self.error
        assert re.fullmatch(r"/os-quota-sets/p1(/detail)?", path)
        one = {"limit": 5, "in_use": 2, "reserved": 1}
        return SimpleNamespace(
            status_code=200, json=lambda: {"quota_set": {"cores": one, "gigabytes": one}}
        )

    def put(self, path: str, json: Any) -> Any:
        self.put_bodies.append((path, json))
        return SimpleNamespace(status_code=200, json=dict)


def cloud(api: Api) -> Cloud:
    return Cloud(lambda: SimpleNamespace(compute=api, block_storage=api))


@pytest.mark.parametrize("resource", ["cores", "gigabytes"])
def test_limits_are_read_and_set_over_the_api(resource: str) -> None:
    api = Api()
    quotas = Quotas({"north": cloud(api)}, "p1")
    assert quotas.read(resource) == {"north": Limit(5, 3)}
    quotas.set("north", resource, 9)
    assert api.put_bodies == [("/os-quota-sets/p1", {"quota_set": {resource: 9}})]


def test_a_region_that_is_down_has_a_limit_that_nobody_knows() -> None:
    quotas = Quotas({"a": cloud(Api()), "b": cloud(Api(OSError("down")))}, "p1")
    with pytest.raises(CommandFailed, match=r"^b: down\. Its limit of cores"):
        apply(quotas, "cores", {"a": 9, "b": 1})
