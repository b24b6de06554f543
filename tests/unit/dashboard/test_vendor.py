"""What the dashboard ships of others is as they released it."""

from __future__ import annotations

import hashlib

from dashboard.static_files import KINDS, STATIC
from dashboard.vendor import FILES

VENDOR = STATIC / "vendor"


def test_every_file_is_unchanged_and_in_the_table() -> None:
    found = {
        path.relative_to(VENDOR).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in VENDOR.rglob("*")
        if path.suffix in KINDS
    }
    assert found == {one.path: one.sha256 for one in FILES}


def test_every_package_has_its_licence() -> None:
    for one in FILES:
        assert (VENDOR / one.path).parent.joinpath("LICENSE.txt").is_file()
