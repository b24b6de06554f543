"""Each page of the dashboard as it looks: accessible in light and dark, and within a phone.

Pictures of all are kept in `.tox/screenshots/`.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("selenium")

from tests.browser.accessibility import violations
from tests.browser.chromium import DESK, PHONE, Window, as_json
from tests.browser.places import OFTEN, Place, furnished, places
from tests.functional.cloud import EmbeddedCloud
from tests.functional.dashboard.conftest import LogIn
from tests.unit.sources import ROOT

PICTURES = ROOT / ".tox" / "screenshots"
PLACES = [
    pytest.param(one, id=one.name, marks=() if one.path in OFTEN else pytest.mark.long)
    for one in places()
]


@pytest.fixture(scope="module")
def things(three_nodes: EmbeddedCloud, people: LogIn) -> Iterator[dict[str, str]]:
    """One of each thing."""
    with furnished(three_nodes, people("admin")) as made:
        yield made


@pytest.fixture(scope="module")
def pictures() -> Path:
    """Where pictures are kept, those of an earlier run removed."""
    shutil.rmtree(PICTURES, ignore_errors=True)
    return PICTURES


@pytest.fixture(scope="module", autouse=True)
def emptied(three_nodes: EmbeddedCloud) -> Iterator[None]:
    """Leave nothing to the next file."""
    from tests.functional.dashboard.conftest import clear

    yield
    clear(three_nodes)


@pytest.mark.parametrize("place", PLACES)
def test_every_page_is_accessible(
    window: Window, people: LogIn, things: dict[str, str], pictures: Path, place: Place
) -> None:
    if place.person:
        window.take(people(place.person))
    window.open(place.path.format(**things))
    assert window.find("h1").text not in ("Not found", "That did not work")
    window.picture(pictures / f"{place.name}-light.png")
    found = violations(window)
    window.run("document.documentElement.dataset.theme = 'dark'")
    window.picture(pictures / f"{place.name}-dark.png")
    found += violations(window, contrast_only=True)
    window.run("document.documentElement.dataset.theme = 'light'")
    window.resize(PHONE)
    overflow = window.overflow()
    window.picture(pictures / f"{place.name}-390.png")
    window.resize(DESK)
    assert found == [], as_json(found)
    assert overflow <= 0
