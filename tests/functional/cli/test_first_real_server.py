"""From Proxmox VE as it was installed to a first server, by the lines of README.md."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.functional.unprepared import at_a_terminal, unprepared
from tests.pages import block

pytestmark = pytest.mark.timeout(2400)


def test_two_commands(tmp_path: Path) -> None:
    lines = block("README.md", "", "micronova proxmox prepare").splitlines()
    assert len(lines) == 2
    home = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}
    (tmp_path / "home").mkdir()
    with unprepared(tmp_path / "simulator", nodes=1, speed=50.0) as cluster:
        first, second = (
            line.replace("micronova ", f"{Path(sys.executable).parent}/micronova ", 1).replace(
                "https://pve1.example.org:8006", cluster.url
            )
            for line in lines
        )
        answers = [
            ("Password of root@pam: ", cluster.password),
            ("(Node, Certificates)? [y/N] ", "y"),
            ("Make all of it? [y/N] ", "y"),
        ]
        code, shown = at_a_terminal(["bash", "-ec", first], answers, home)
        assert code == 0, shown
        code, shown = at_a_terminal(["bash", "-ec", f"{second} --port 0"], [], home)
        assert code == 0, shown
        assert "ACTIVE after" in shown
        assert "nothing is left of it" in shown
        created = [one for one in cluster.writes() if one.startswith("POST nodes/pve1/qemu")]
        assert created
