from __future__ import annotations

from pathlib import Path

from launcher.states_document import document


def test_the_page_is_current() -> None:
    page = Path(__file__).parents[3] / "docs" / "states.md"
    assert page.read_text() == document(), "run: tox -e generate"
