"""The doctor's page names every finding, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ("compute/doctor", "launcher/doctor")
_CODE = re.compile(r'(?:Finding|_broken)\(\s*"([a-z_]+)"|code = "([a-z_]+)"')
_PREFLIGHT = re.compile(r'^    "([a-z_]+)": "', re.MULTILINE)
_ROW = re.compile(r"^\| (`[a-z_`, ]+`) \|", re.MULTILINE)


def test_every_finding_is_on_the_page() -> None:
    found: set[str] = {"schema_differs", "bus_unreachable", "storage_differs"}
    found |= {"storage_not_everywhere", "vlans_differ", "mtu_differs"}
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found |= {one or other for one, other in _CODE.findall(text)}
    text = (ROOT / "compute/doctor/examine.py").read_text(encoding="utf-8")
    found |= set(_PREFLIGHT.findall(text))
    page = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
    named = {one for row in _ROW.findall(page) for one in re.findall(r"`([a-z_]+)`", row)}
    assert named == found
