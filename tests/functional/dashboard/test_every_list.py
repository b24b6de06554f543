"""Every page without a resource of its own, as everybody opens it."""

from __future__ import annotations

import pytest

from dashboard.sections import SECTIONS
from tests.functional.dashboard.browser import Browser

PATHS = sorted(
    {
        page.path
        for section in SECTIONS
        for page in section.pages
        if page.method == "GET" and "{" not in page.path
    }
)


@pytest.mark.parametrize("path", PATHS)
def test_it_opens(path: str, member: Browser, reader: Browser, admin: Browser) -> None:
    """Or says in a sentence why not: another page is named, a right or a name is missing."""
    for one in (member, reader, admin):
        one.get(path)
        assert one.status in (200, 403, 404), one.page.text
        if one is admin:
            assert one.status != 403
