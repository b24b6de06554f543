"""Tables of rooms in READMEs name what their modules import."""

from __future__ import annotations

import re

import pytest

from tests.unit.sources import ROOT, imported

ROW = re.compile(r"^\| `(\w+)/` \|.*\| ([^|]+) \|$", re.MULTILINE)


@pytest.mark.parametrize(
    ("readme", "folder"), [("conductor/store", "conductor/store"), ("db", "db/reads")]
)
def test_rooms_import_what_their_table_says(readme: str, folder: str) -> None:
    text = (ROOT / readme / "README.md").read_text(encoding="utf-8")
    said = {room: set(re.findall(r"`(\w+)`", names)) for room, names in ROW.findall(text)}
    rooms = {path.parent.name for path in (ROOT / folder).glob("*/__init__.py")}
    assert said == {room: (rooms_imported(folder, room) & rooms) - {room} for room in rooms}


def rooms_imported(folder: str, room: str) -> set[str]:
    """Return the modules and rooms of a folder that one of its rooms imports."""
    parent = folder.replace("/", ".") + "."
    return {
        name.removeprefix(parent).split(".")[0]
        for path in (ROOT / folder / room).rglob("*.py")
        for name in imported(path)
        if name.startswith(parent)
    }
