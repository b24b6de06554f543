"""What others wrote and the tree carries is what their packages have."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from dashboard import static_files, vendor
from tests.browser import vendored

FILES = [
    *((static_files.STATIC / "vendor", one) for one in vendor.FILES),
    *((vendored.FOLDER, one) for one in vendored.FILES),
]


@pytest.mark.parametrize(("folder", "file"), FILES, ids=[one.path for _, one in FILES])
def test_a_file_is_unchanged(folder: Path, file: vendor.Vendored) -> None:
    content = (folder / file.path).read_bytes()
    assert hashlib.sha256(content).hexdigest() == file.sha256


@pytest.mark.parametrize("folder", sorted({folder for folder, _ in FILES}), ids=str)
def test_no_other_file_is_there(folder: Path) -> None:
    named = {folder / file.path for of, file in FILES if of == folder}
    found = {path for path in folder.rglob("*") if path.is_file()}
    assert {path for path in found if "LICEN" not in path.name.upper()} == named
    for path in named:
        assert any("LICEN" in one.name.upper() for one in path.parent.iterdir())
