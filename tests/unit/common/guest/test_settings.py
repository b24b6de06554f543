"""The table of settings has what is read of flavors and images, and nothing that is refused."""

from __future__ import annotations

from common.guest import hardware, limits, throttle
from common.guest.asked import Asked
from common.guest.settings import SETTINGS


class Noting(Asked):
    """Notes what is asked for."""

    def __init__(self) -> None:
        super().__init__({}, {})
        self.names: set[tuple[str, str]]
        object.__setattr__(self, "names", set())

    def flavor_first(self, spec: str, image_property: str) -> str:
        self.names.add((spec, image_property))
        return super().flavor_first(spec, image_property)

    def agreed(self, spec: str, image_property: str) -> str:
        self.names.add((spec, image_property))
        return super().agreed(spec, image_property)


def test_all_that_is_read_is_in_the_table() -> None:
    noting = Noting()
    hardware.of(2, 1024, noting)
    known = {(one.spec, one.image_property) for one in SETTINGS}
    assert noting.names - known == set()
    bounds = {f"quota:{name}" for name in (*throttle.DISK_LIMITS, *throttle.VIF_LIMITS)}
    assert bounds <= {one.spec for one in SETTINGS}


def test_no_name_is_there_twice_and_none_is_refused() -> None:
    for names in (
        [one.spec for one in SETTINGS if one.spec],
        [one.image_property for one in SETTINGS if one.image_property],
    ):
        assert len(names) == len(set(names))
    refused = {one.spec for one in limits._LIMITS if one.spec}
    assert not refused & {one.spec for one in SETTINGS}
    for one in SETTINGS:
        assert one.does.endswith((".", "…")), one
        for value in one.values:
            if one.spec.startswith("hw:"):
                hardware.read(1, 1024, {one.spec: value}, {})
