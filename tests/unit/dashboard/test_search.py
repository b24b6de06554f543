"""Search everything: what is read only in part says so."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.cloud import IMAGE, Call
from dashboard.pages.search import Hit, Kind, _found, _Seen


@pytest.mark.parametrize(
    ("links", "read"),
    [
        ({}, 0),
        ({"images_links": [{"rel": "previous", "href": "?marker=a"}]}, 0),
        ({"next": "/v2/images?marker=b"}, 2),
        ({"images_links": [{"rel": "next", "href": "?marker=b"}]}, 2),
    ],
)
def test_of_more_than_were_read_the_page_says_so(links: dict[str, Any], read: int) -> None:
    answer = {"images": [{"id": "a"}, {"id": "b"}], **links}
    hits = [Hit("a", "/images/a")]
    kind = Kind("Images", Call(IMAGE, "/v2/images"), lambda _: hits, read="images")
    assert _found(kind, answer, _Seen()).read == read
    by_the_api = Kind("Images", Call(IMAGE, "/v2/images"), lambda _: hits)
    assert _found(by_the_api, answer, _Seen()).read == 0
