"""Sites of several releases beside each other."""

from __future__ import annotations

import json
from pathlib import Path

from release.site_versions import listed, versions, write


def test_versions_are_listed_newest_first() -> None:
    found = versions(["1.0.0", "versions.json", "1.10.0", "1.9.1", "assets"])
    assert [str(one) for one in found] == ["1.10.0", "1.9.1", "1.0.0"]


def test_what_is_before_a_release_is_not_the_latest() -> None:
    found = listed(versions(["1.1.0.dev0", "1.0.0", "0.9.0"]))
    assert [(one["version"], one["aliases"]) for one in found] == [
        ("1.1.0.dev0", []),
        ("1.0.0", ["latest"]),
        ("0.9.0", []),
    ]
    assert listed(versions(["1.1.0.dev0"]))[0]["aliases"] == ["latest"]


def test_the_first_page_leads_to_the_newest_release(tmp_path: Path) -> None:
    for name in ("1.0.0", "1.1.0.dev0", "other"):
        (tmp_path / name).mkdir()
    write(tmp_path)
    named = json.loads((tmp_path / "versions.json").read_text())
    assert [one["version"] for one in named] == ["1.1.0.dev0", "1.0.0"]
    assert "url=1.0.0/index.html" in (tmp_path / "index.html").read_text()
