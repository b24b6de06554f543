"""Every block of a page that is followed is used by its test, or says why not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.fixtures import (
    dashboards,
    deployment_page,
    heat_page,
    install_page,
    kubernetes,
    terraform,
)
from tests.pages import ROOT, Block, blocks

Printed = tuple[str, str, str]

RUN: frozenset[Printed] = frozenset().union(
    *(page.RUN for page in (deployment_page, dashboards, heat_page, install_page)),
    *(page.RUN for page in (kubernetes, terraform)),
)
"""Blocks that tests use: page, language and a text of each."""

NOT_RUN: Mapping[Printed, str] = {
    terraform.COMMANDS: (
        "its registry alone has the provider: tests/contract/test_printed_terraform.py sends what "
        "it asks of the file"
    )
}
"""Others, and why they are not used."""

PAGES = sorted({page for page, _, _ in RUN | NOT_RUN.keys()})


def fits(one: Block, printed: Printed) -> bool:
    page, language, having = printed
    return one.page == page and one.language == language and having in one.text


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_used_once_or_says_why_not(page: str) -> None:
    for one in blocks(ROOT / page):
        found = [printed for printed in [*RUN, *NOT_RUN] if fits(one, printed)]
        assert len(found) == 1, f"{one}: {found}"


@pytest.mark.parametrize("printed", sorted(RUN | NOT_RUN.keys()), ids=str)
def test_what_is_named_is_printed_once(printed: Printed) -> None:
    found = [one for one in blocks(ROOT / printed[0]) if fits(one, printed)]
    assert len(found) == 1


def test_reasons_are_given() -> None:
    assert all(NOT_RUN.values())
    assert all(deployment_page.COMMANDS_NOT_RUN.values())
