"""What uploads leave free, what a project may have of it, and a delete on a full disk."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import requests
import sqlalchemy as sa

from api.image.data.room import BALLAST_BYTES, Room
from api.image.data.spool import Spool
from api.image.data.uploads import PLACES
from common.context import internal
from common.errors import TooLarge, Unavailable
from conductor.endpoints.hosts.services import ServiceEndpoint
from db import schema
from tests.fixtures import auth
from tests.fixtures.small_disk import fill, small_disk
from tests.functional.api_image.test_uploads import DATA, Site, _connected, a_site
from tests.functional.api_image.test_user_images import call
from tests.functional.waiting import eventually

MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "free", "size", "reserve_mib", "fits"),
    [
        (100 * GIB, 6 * GIB, GIB, -1, True),
        (100 * GIB, 6 * GIB, GIB + 1, -1, False),
        (10 * GIB, 2 * GIB, GIB, -1, True),
        (10 * GIB, 2 * GIB, GIB + 1, -1, False),
        (10 * GIB, 2 * GIB, 2 * GIB, 0, True),
        (10 * GIB, GIB, 0, -1, True),
        (10 * GIB, GIB - 1, 0, -1, False),
    ],
)
def test_the_reserve_is_the_larger_of_two(
    tmp_path: Path, total: int, free: int, size: int, reserve_mib: int, fits: bool
) -> None:
    room = Room(tmp_path, reserve_mib, lambda _: (total, free))
    with contextlib.nullcontext() if fits else pytest.raises(TooLarge, match="media is full"):
        room.require(size)


def test_an_upload_ends_before_the_disk_is_full(tmp_path: Path) -> None:
    spool = Spool(str(tmp_path / "spool"), GIB, lambda _: ())
    free = 2 * GIB
    spool.room = Room(tmp_path, -1, lambda _: (10 * GIB, free))
    with spool.upload("a") as upload:
        upload.take([b"x" * 100])
        free = GIB + 50
        with pytest.raises(TooLarge):
            upload.take([b"x" * 100])
    assert list((tmp_path / "spool").iterdir()) == []


def test_what_does_not_fit_is_refused_before_it_is_sent(tmp_path: Path) -> None:
    with a_site(tmp_path, spool_reserve_mib=1 << 40) as site:
        image_id = site.new()
        refused = site.send(image_id)
        assert (refused.status_code, "media is full" in refused.text) == (413, True)
        assert (site.image(image_id)["status"], site.files()) == ("queued", [])


# --- projects


def step(site: Site, image_id: str, name: str) -> requests.Response:
    """Send data otherwise than as an upload."""
    return requests.put(
        f"{site.url}/images/{image_id}/{name}",
        data=DATA,
        headers={"X-Auth-Token": auth.MEMBER, "Content-Type": "application/octet-stream"},
        timeout=60,
    )


@contextlib.contextmanager
def limited(folder: Path, **limits: int) -> Iterator[Site]:
    with a_site(folder, quota=limits) as site:
        yield site


def usage(site: Site, token: str = auth.MEMBER) -> dict[str, Any]:
    answer = call(f"{site.url}/info/usage", token=token)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["usage"])


def test_a_project_has_so_many_images(tmp_path: Path) -> None:
    with limited(tmp_path, image_count_total=2) as site:
        first, _ = site.new(), site.new()
        body = {"disk_format": "raw", "container_format": "bare"}
        refused = call(f"{site.url}/images", "POST", body)
        assert refused.status_code == 413
        assert "over a limit for image_count_total: the limit is 2, 2 are used" in refused.text
        assert call(f"{site.url}/images", "POST", body, token=auth.OTHER).status_code == 201
        assert usage(site)["image_count_total"] == {"limit": 2, "usage": 2}
        assert call(f"{site.url}/images/{first}", "DELETE").status_code == 204
        assert call(f"{site.url}/images", "POST", body).status_code == 201


def test_a_project_keeps_so_many_bytes(tmp_path: Path) -> None:
    with limited(tmp_path, image_size_total=5) as site:
        assert len(DATA) > 4 * MIB
        first, second = site.new(), site.new()
        assert site.send(first).status_code == 204
        assert usage(site)["image_size_total"] == {"limit": 5, "usage": len(DATA) // MIB}
        refused = site.send(second)
        assert (refused.status_code, "image_size_total" in refused.text) == (413, True)
        assert site.image(second)["status"] == "queued"
        assert len(site.files()) == 1
        assert call(f"{site.url}/images/{first}", "DELETE").status_code == 204
        assert site.send(second).status_code == 204


def test_a_project_has_so_many_bytes_and_images_wait(tmp_path: Path) -> None:
    with limited(tmp_path, image_stage_total=5, image_count_uploading=2) as site:
        ids = [site.new() for _ in range(4)]
        assert step(site, ids[0], "stage").status_code == 204
        assert usage(site)["image_stage_total"] == {"limit": 5, "usage": len(DATA) // MIB}
        refused = step(site, ids[1], "stage")
        assert (refused.status_code, "image_stage_total" in refused.text) == (413, True)
        assert site.send(ids[1], b"x").status_code == 204
        refused = site.send(ids[2], b"x")
        assert (refused.status_code, "image_count_uploading" in refused.text) == (413, True)
        assert usage(site)["image_count_uploading"] == {"limit": 2, "usage": 2}
        assert site.image(ids[2])["status"] == "queued"
        assert usage(site, auth.OTHER)["image_count_uploading"]["usage"] == 0


def test_bytes_that_are_being_sent_count(tmp_path: Path) -> None:
    with limited(tmp_path, image_stage_total=5) as site:
        one, other = site.new(), site.new()
        site.spool.mkdir()
        with (site.spool / f"{one}.part").open("wb", buffering=0) as sent:
            # As another process of the API does.
            fcntl.flock(sent, fcntl.LOCK_EX)
            sent.write(b"x" * 4 * MIB)
            refused = site.send(other, b"x" * 2 * MIB)
            assert (refused.status_code, "image_stage_total" in refused.text) == (413, True)
            assert usage(site)["image_count_uploading"]["usage"] == 1
            assert usage(site, auth.OTHER)["image_stage_total"]["usage"] == 0


# --- a full disk


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own."""
    with small_disk(tmp_path / "small", 120) as folder:
        yield folder


def test_an_image_is_deleted_on_a_full_disk(small: Path) -> None:
    with a_site(small, spool_reserve_mib=0) as site:
        image_id = site.new()
        assert site.send(image_id).status_code == 204
        store = site.world.conductor.store
        assert store.answers()
        eventually((small / "spool.ballast").exists, 10)
        assert (small / "spool.ballast").stat().st_blocks * 512 >= BALLAST_BYTES
        fill(small)
        assert os.statvfs(small).f_bavail == 0
        refused = site.send(site_new_or_none(site) or image_id)
        assert refused.status_code in {409, 413, 503}
        with pytest.raises(Unavailable):
            _write_much(site)
        assert call(f"{site.url}/images/{image_id}", "DELETE").status_code == 204
        assert call(f"{site.url}/images/{image_id}").status_code == 404
        # The data go with it, and there is room again.
        eventually(lambda: site.files() == [], 10)
        assert store.answers()


def test_who_can_not_write_is_not_ready(tmp_path: Path) -> None:
    with a_site(tmp_path) as site:
        store = site.world.conductor.store
        services = ServiceEndpoint(site.world.conductor.cloud, cast("Any", None))

        mode = "query_only=1"

        def set_mode(connection: Any, *_: Any) -> None:
            connection.execute(f"PRAGMA {mode}")

        sa.event.listen(store._writer, "checkout", set_mode)
        assert call(f"{site.url}/images", "POST", {}).status_code == 503
        for ask in (store.answers, lambda: services.ping(internal())):
            with pytest.raises(Unavailable):
                ask()
        mode = "query_only=0"
        assert store.answers()
        assert services.ping(internal())


def site_new_or_none(site: Site) -> str | None:
    answer = call(f"{site.url}/images", "POST", {"disk_format": "raw", "container_format": "bare"})
    return str(answer.json()["id"]) if answer.status_code == 201 else None


def _write_much(site: Site) -> None:
    """Write more than fits what the database has of the disk."""
    change = schema.images.update().values(properties={"x": "y" * 8 * MIB})
    site.world.conductor.store.run(lambda c: c.execute(change))


# --- shares


def test_a_project_s_uploads_leave_places_to_others(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        site = stack.enter_context(a_site(tmp_path))
        ids = [site.new() for _ in range(PLACES // 2 + 1)]
        for one in ids[:-1]:
            slow = stack.enter_context(_connected(site, one, len(DATA)))
            slow.sendall(DATA[:10])
        eventually(lambda: len(site.files()) == PLACES // 2, 20)
        refused = site.send(ids[-1])
        assert (refused.status_code, "of this project" in refused.text) == (503, True)
        body = {"disk_format": "raw", "container_format": "bare"}
        others = call(f"{site.url}/images", "POST", body, token=auth.OTHER).json()["id"]
        assert site.send(others, token=auth.OTHER).status_code == 204
        slow.close()
        eventually(lambda: site.send(ids[-1]).status_code == 204, 20)
