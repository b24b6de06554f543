"""Who may read and write a state directory, before a cloud starts in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from common.errors import ConfigurationError
from launcher.embedded.state import taken

SOMEBODY = 54321


def begin(folder: Path) -> list[str]:
    """Take a state directory; return what is said."""
    said: list[str] = []
    with taken(folder, said.append):
        pass
    return said


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory with a file of passwords in it."""
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    (folder / "secrets.json").write_text("{}")
    (folder / "secrets.json").chmod(0o600)
    return folder


def test_a_private_directory_is_nothing_to_speak_of(state: Path, tmp_path: Path) -> None:
    assert begin(state) == []
    assert begin(state) == []
    assert begin(tmp_path / "new") == []
    assert mode(tmp_path / "new") == 0o700


def test_a_path_that_the_locale_cannot_name_is_refused(tmp_path: Path) -> None:
    # As Python reads arguments where the character set is ASCII.
    path = tmp_path / os.fsencode("zustände").decode("ascii", "surrogateescape")
    with pytest.raises(ConfigurationError, match=r"LC_ALL=C\.UTF-8") as refused:
        begin(path)
    assert refused.value.message.encode()
    assert not path.exists()


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o1777])
def test_what_others_could_write_is_closed_and_said(state: Path, bits: int) -> None:
    state.chmod(bits)
    [said] = begin(state)
    assert str(state) in said
    assert "could be written by others" in said
    assert mode(state) & 0o077 == 0
    assert begin(state) == []


def test_secrets_that_others_could_read_are_closed_and_said(state: Path) -> None:
    (state / "keystone").mkdir(mode=0o755)
    key = state / "keystone" / "key"
    key.write_text("x")
    key.chmod(0o644)
    (state / "secrets.json").chmod(0o640)
    [said] = begin(state)
    assert "and 2 more could be read by others" in said
    assert [mode(path) for path in (key, key.parent, state / "secrets.json")] == [
        0o600,
        0o700,
        0o600,
    ]


def test_where_everybody_can_exchange_the_directory_no_cloud_starts(state: Path) -> None:
    state.parent.chmod(0o777)
    with pytest.raises(ConfigurationError, match="everybody can exchange it"):
        begin(state)
    state.parent.chmod(0o1777)
    assert begin(state) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("planted", ["", "secrets.json", "link"])
def test_nothing_of_another_user_is_trusted(state: Path, planted: str) -> None:
    (state / "link").symlink_to("/etc/passwd")
    os.chown(state / planted, SOMEBODY, -1, follow_symlinks=False)
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        begin(state)


def test_the_lock_is_no_link(state: Path, tmp_path: Path) -> None:
    (state / "up.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="can't be written"):
        begin(state)
    assert not (tmp_path / "elsewhere").exists()
