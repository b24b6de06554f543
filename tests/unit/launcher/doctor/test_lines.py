"""What the doctor advises names what configuration names: as one word."""

from __future__ import annotations

import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from launcher.doctor import files, identity
from tests.fixtures.nasty import IN_SHELLS


@pytest.mark.parametrize("name", IN_SHELLS)
@pytest.mark.parametrize("system", [True, False])
def test_a_login_of_any_name(name: str, system: bool) -> None:
    access = SimpleNamespace(username=name, project_name=name, system_scoped=system)
    words = shlex.split(identity._role_line(access))
    assert words[3:5] == ["--user", name]
    assert words[5:] == (
        ["--system", "all", "reader"] if system else ["--project", name, "service"]
    )


@pytest.mark.parametrize("name", [one for one in IN_SHELLS if "/" not in one])
def test_a_file_of_any_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.conf"
    path.write_text("[DEFAULT]\n")
    path.chmod(0o644)
    conf = cfg.ConfigOpts()
    conf(["--config-file", str(path)])
    [found] = files.readable_by_others(conf)
    assert [shlex.split(line) for line in found.lines] == [["chmod", "o-rwx", str(path)]]
