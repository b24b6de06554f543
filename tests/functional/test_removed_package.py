"""What the Debian package's script before a removal leaves enabled, by systemd's own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pages import ROOT

ENABLED = ("micronova-api@public", "micronova-api@placement", "micronova-conductor")


def test_no_service_is_enabled_afterwards(tmp_path: Path) -> None:
    """Also instances of a template, which lists of units don't name."""
    systemctl = shutil.which("systemctl")
    if systemctl is None:
        pytest.skip("needs systemctl")
    system, programs = tmp_path / "system", tmp_path / "programs"
    shutil.copytree(ROOT / "etc" / "systemd", system / "usr/lib/systemd/system")
    programs.mkdir()
    of_a_folder = programs / "systemctl"
    of_a_folder.write_text(f'#!/bin/sh\nexec {systemctl} --root={system} "$@"\n')
    of_a_folder.chmod(0o755)
    subprocess.run([of_a_folder, "--quiet", "enable", *ENABLED], check=True)
    assert links(system) == {f"{name}.service" for name in ENABLED}
    subprocess.run(
        ["sh", ROOT / "debian" / "micronova.prerm", "remove"],
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"},
        check=True,
    )
    assert links(system) == set()


def links(system: Path) -> set[str]:
    return {path.name for path in (system / "etc").rglob("*.service")}
