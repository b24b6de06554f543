from __future__ import annotations

from web.token_cache import TokenCache


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_an_entry_lasts_its_time() -> None:
    clock = Clock()
    cache = TokenCache(10, clock)
    cache.set("key", b"value", time=300)
    clock.now += 299.9
    assert cache.get("key") == b"value"
    clock.now += 0.1
    assert cache.get("key") is None


def test_no_time_stores_nothing() -> None:
    cache = TokenCache(10)
    cache.set("key", b"value", time=-1)
    cache.set("key", b"value")
    assert cache.get("key") is None


def test_the_oldest_goes_first() -> None:
    cache = TokenCache(2)
    for key in ("a", "b", "a", "c"):
        cache.set(key, b"value", time=300)
    assert [cache.get(key) for key in "abc"] == [b"value", None, b"value"]
