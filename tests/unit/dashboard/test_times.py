"""Times: every page writes them by the filters, so that a script can show the reader's zone."""

from __future__ import annotations

import re

import pytest

from common import clock
from dashboard.render import TEMPLATES, age, ago, environment, exact, tick

#: what is printed of a name that is a time
PRINTED = re.compile(r"\{\{[^{}]*?\b(?:\w+_at|created|updated|began|since|until)\b[^{}]*\}\}")
BY_FILTERS = re.compile(r"\|\s*(age|ago|exact)\b")
#: a script makes the text of what points at a chart from these
OF_CHARTS = ("{{ band.until }}", "{{ band.until|moment }}")
WITHOUT_SCRIPT = re.compile(
    r"<noscript>.*?</noscript>|<(span|p) class=\"(?:dim )?unscripted\">.*?</\1>", re.DOTALL
)
PAGES = sorted(path.relative_to(TEMPLATES).as_posix() for path in TEMPLATES.rglob("*.html"))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_prints_times_by_the_filters(page: str) -> None:
    text = (TEMPLATES / page).read_text(encoding="utf-8")
    for printed in PRINTED.findall(text):
        if printed.startswith("{{ chip("):
            continue
        assert BY_FILTERS.search(printed) or printed in OF_CHARTS, printed
    assert "<time" not in text
    # the exact time shows when such a one is pointed at
    assert not re.search(r"\|\s*(whole_seconds|duration)\s*\}\}\s+ago", text)
    assert "|moment" not in text.replace(OF_CHARTS[1], "")
    assert "UTC" not in WITHOUT_SCRIPT.sub("", text)


def test_what_is_relative_shows_its_time_when_pointed_at() -> None:
    then = clock.iso(clock.after(-130)) or ""
    assert re.fullmatch(rf'<time datetime="{then}" title="[^"]+ UTC">2 min ago</time>', ago(then))
    assert ">2 min</time>" in age(then)
    assert (ago(None), age(""), exact("never")) == ("", "", "")
    assert ">in 2 h<" in ago(clock.iso(clock.after(7300)))
    assert ">0 s ago<" in ago(clock.iso(clock.after(3))), "of a clock that is ahead"


def test_a_label_of_an_axis_has_its_time() -> None:
    at = "2026-11-29T18:00:00Z"
    day = '<time class="day" datetime="2026-11-29T18:00:00Z">29 Nov</time>'
    assert tick("29 Nov", at, is_day=True) == day
    assert 'class="clock"' in tick("18:00", at, is_day=False)


def test_filters_are_those_of_templates() -> None:
    filters = environment(str).filters
    assert {"age", "ago", "exact", "tick"} <= filters.keys()
