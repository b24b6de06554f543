"""The Image API over a database with a handful of images."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from api.image.app import make_app
from tests.fixtures import auth
from tests.fixtures.listings import NOW, a_conf, a_database, an_image, mounted, served

HOUR = datetime.timedelta(hours=1)


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sa.Engine]:
    """Five images, the later in this list the newer; and a deleted one."""
    folder: Path = tmp_path_factory.mktemp("image")
    rows = [
        an_image("debian-12", created_at=NOW, properties={"os_distro": "debian"}, size_bytes=400),
        an_image(
            "debian-13",
            created_at=NOW + HOUR,
            properties={"os_distro": "debian", "architecture": "x86_64", "visibility": "private"},
            checksum="ab" * 64,
            size_bytes=500,
        ),
        an_image("ubuntu, 24.04", created_at=NOW + 2 * HOUR, checksum="cd" * 16),
        an_image("raw", created_at=NOW + 3 * HOUR, disk_format="raw", virtual_size_bytes=None),
        an_image("twin", created_at=NOW + 4 * HOUR),
        an_image("gone", status="deleted"),
    ]
    engine = a_database(folder, rows)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def url(database: sa.Engine) -> Iterator[str]:
    """The API's URL, mounted as in the catalog."""
    app = make_app(a_conf(), database, auth.header_auth)
    with served(mounted(app, "/image")) as root:
        yield f"{root}/image"
