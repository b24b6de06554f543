"""Downloads of kept uploads over HTTP, by the embedded server and by gunicorn's worker."""

from __future__ import annotations

import contextlib
import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from requests.adapters import HTTPAdapter

from api.image.data.kept import PLACES
from common.messages.commands import RemoveImage, StoreImage
from tests.fixtures import auth
from tests.functional.api_image.test_uploads import DATA, Site, a_site
from tests.functional.api_image.test_user_images import call
from tests.functional.waiting import eventually


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with a_site(tmp_path, keep_data=True) as made:
        yield made


def an_active(site: Site) -> str:
    image_id = site.new()
    assert site.send(image_id).status_code == 204
    sent = site.world.compute.sent
    command = eventually(
        lambda: next(
            (
                one
                for _, one in sent
                if isinstance(one, StoreImage) and one.resource_id == image_id
            ),
            None,
        ),
        10,
        0.02,
    )
    site.world.answer(command, ok=True)
    assert site.becomes(image_id, "active")
    return image_id


def get(site: Site, image_id: str, token: str = auth.MEMBER, **headers: str) -> requests.Response:
    return call(f"{site.url}/images/{image_id}/file", token=token, **headers)


def test_what_was_uploaded_is_downloaded_until_it_is_deleted(site: Site) -> None:
    image_id = an_active(site)
    answer = get(site, image_id)
    assert (answer.status_code, answer.content) == (200, DATA)
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert answer.headers["Content-MD5"] == hashlib.md5(DATA).hexdigest()
    assert get(site, image_id, auth.OTHER).status_code == 404
    assert get(site, image_id, auth.READER).status_code == 403
    assert call(f"{site.url}/images/{image_id}/actions/deactivate", "POST").status_code == 204
    assert get(site, image_id).status_code == 403
    assert get(site, image_id, auth.ADMIN).content == DATA
    assert call(f"{site.url}/images/{image_id}", "DELETE").status_code == 204
    site.world.answer(site.command(RemoveImage), ok=True, gone=True)
    assert get(site, image_id).status_code == 404
    # A later request deletes it from the spool.
    other = an_active(site)
    eventually(lambda: len(site.files()) == 1, 10)
    assert get(site, other).content == DATA


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("bytes=0-0", 0, 0), ("bytes=10-99", 10, 99), ("bytes=5-", 5, None), ("bytes=-7", -7, None)],
)
def test_a_range_is_downloaded(site: Site, asked: str, first: int, last: int | None) -> None:
    image_id = an_active(site)
    answer = get(site, image_id, Range=asked)
    wanted = DATA[first : None if last is None else last + 1]
    assert (answer.status_code, answer.content) == (206, wanted)
    begin = first % len(DATA)
    whole = f"bytes {begin}-{begin + len(wanted) - 1}/{len(DATA)}"
    assert answer.headers["Content-Range"] == whole


def test_ranges_that_are_none_are_refused(site: Site) -> None:
    image_id = an_active(site)
    for asked in ("bytes=-", "bytes=x-1", "bytes=9-3", f"bytes={len(DATA)}-", "bytes=0-1,5-6"):
        assert get(site, image_id, Range=asked).status_code == 416, asked


def test_without_data_nothing_is_downloaded(site: Site, tmp_path: Path) -> None:
    image_id = site.new()
    assert get(site, image_id).status_code == 204
    active = an_active(site)
    for name in site.files():
        (site.spool / name).unlink()
    refused = get(site, active)
    assert (refused.status_code, "[images] keep_data" in refused.text) == (403, True)


class Narrow(HTTPAdapter):
    """Connections with a small window: else the kernel takes a whole image that nobody reads."""

    def init_poolmanager(self, *args: Any, **more: Any) -> None:
        few = (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        super().init_poolmanager(*args, socket_options=[few], **more)


def test_a_project_s_slow_downloads_leave_places_to_others(site: Site) -> None:
    image_id = an_active(site)
    for _ in range(PLACES):
        # A place is free again when all is sent.
        assert get(site, image_id, Range="bytes=0-9").content == DATA[:10]
    with contextlib.ExitStack() as stack:
        narrow = stack.enter_context(requests.Session())
        narrow.mount("http://", Narrow())
        for _ in range(PLACES // 2):
            slow = narrow.get(
                f"{site.url}/images/{image_id}/file",
                headers={"X-Auth-Token": auth.MEMBER},
                stream=True,
                timeout=60,
            )
            stack.callback(slow.close)
            assert slow.status_code == 200
        refused = get(site, image_id)
        assert (refused.status_code, "of this project" in refused.text) == (503, True)
        assert get(site, image_id, auth.ADMIN).content == DATA
    eventually(lambda: get(site, image_id).status_code == 200, 10)
