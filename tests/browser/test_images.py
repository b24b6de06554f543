"""An image made of a file, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("selenium")

from tests.browser.accessibility import violations
from tests.browser.chromium import Window, as_json
from tests.functional.dashboard.conftest import LogIn
from tests.functional.dashboard.test_images import QCOW2

#: bytes of the file, and of them in a second
_SIZE, _SLOW = 4 << 20, 512 << 10


def test_a_file_is_sent_with_the_form_and_says_how_far_it_is(
    cleared: None, window: Window, people: LogIn, tmp_path: Path
) -> None:
    file = tmp_path / "mine.qcow2"
    file.write_bytes(QCOW2.ljust(_SIZE, b"\0"))
    window.take(people("member"))
    window.open("/images/create")
    window.find("#name").send_keys("mine")
    window.find("#file").send_keys(str(file))
    found = violations(window)
    assert found == [], as_json(found)
    window.throttle(_SLOW)
    try:
        window.find("main form button.primary").click()
        window.until(lambda: 0 < window.find("main progress").get_property("value") < 100)
        assert window.path == "/images/create"
        assert window.find("main progress").is_displayed()
        assert window.find("main output").text.endswith(" %")
    finally:
        window.throttle(-1)
    window.until_text("The data are being imported.")
    window.until_text("● active", "4.0 MiB")
    window.open("/images?name=MIN")
    assert "mine" in window.text
    assert "cirros" not in window.find("main table").text


def test_what_is_refused_of_a_form_with_a_file_says_why(
    cleared: None, window: Window, people: LogIn, tmp_path: Path
) -> None:
    file = tmp_path / "odd.qcow2"
    file.write_bytes(QCOW2)
    window.take(people("member"))
    window.expected.add("status of 400")
    window.open("/images/create")
    window.find("#name").send_keys("odd")
    window.find("#properties").send_keys("no sign")
    window.find("#file").send_keys(str(file))
    window.find("main form button.primary").click()
    window.until_text("A property is written NAME=VALUE")
    assert window.find("#name").get_attribute("value") == "odd"
