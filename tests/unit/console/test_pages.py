"""What browsers can get of the disk."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from console.pages import STATIC, Pages


@pytest.mark.parametrize("name", ["vnc_auto", "serial_auto"])
def test_a_page_has_all_that_it_names(name: str) -> None:
    pages = Pages()
    page = pages.get(f"/{name}.html", "host")
    assert page is not None
    named = re.findall(r'(?:href|src)="([^"]+)"', page.content.decode())
    assert f"{name}.js" in named
    for path in set(named) - {"data:,"}:
        assert pages.get(f"/{path}", "host") is not None, path


def test_scripts_have_all_that_they_import() -> None:
    for script in STATIC.rglob("*.js"):
        for line in script.read_text().splitlines():
            if line.startswith(("import", "} from")) and " from " in line:
                name = line.rpartition(" from ")[2].strip(" ;\"'")
                assert (script.parent / name).is_file(), f"{script}: {name}"


@pytest.mark.parametrize(
    "target",
    ["/", "/novnc/LICENSE.txt", "/../config.py", "//vnc_auto.html", "/%2e%2e/config.py", ""],
)
def test_nothing_else_is(target: str) -> None:
    assert Pages().get(target, "host") is None


def test_headers_keep_the_token_on_the_page() -> None:
    page = Pages().get("/vnc_auto.html?path=%3Ftoken%3DT", "cloud.example.org:6080")
    assert page is not None
    headers = dict(page.headers)
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert "wss://cloud.example.org:6080" in headers["Content-Security-Policy"]


def test_a_host_can_add_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("x")
    page = Pages(tmp_path).get("/a.html", "h\r\nX: y; script-src *")
    assert page is not None
    assert "X: y" not in dict(page.headers)["Content-Security-Policy"]
