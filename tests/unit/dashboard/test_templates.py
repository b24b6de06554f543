"""The pages' templates, while the package is upgraded under a process."""

from __future__ import annotations

from pathlib import Path

from dashboard import render


def test_a_page_that_is_shown_late_is_still_of_its_release(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    page, part = tmp_path / "page.html", tmp_path / "parts" / "part.html"
    page.write_text("{% include 'parts/part.html' %}, {{ 2048 | mib }}")
    part.write_text("mine")
    made = render.environment(str, tmp_path)
    page.write_text("{{ 2048 | added_later }}")
    part.unlink()
    assert made.get_template("page.html").render() == "mine, 2 GiB"
