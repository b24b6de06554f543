from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from identity.passwords import USERS, load_passwords


def test_made_once_and_private(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    first = load_passwords(state_dir)
    assert set(first) == set(USERS)
    assert len(set(first.values())) == len(USERS)
    assert load_passwords(state_dir) == first
    assert stat.S_IMODE((state_dir / "secrets.json").stat().st_mode) == 0o600


def test_given_passwords_win_and_stay(tmp_path: Path) -> None:
    first = load_passwords(tmp_path)
    second = load_passwords(tmp_path, {"demo": "chosen"})
    assert second == first | {"demo": "chosen"}
    assert load_passwords(tmp_path) == second


def test_other_content_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "secrets.json"
    path.write_text(json.dumps({"other": {"key": "value"}}))
    load_passwords(tmp_path)
    assert json.loads(path.read_text())["other"] == {"key": "value"}


@pytest.mark.parametrize("text", ["{", "[]", '{"passwords": 1}'])
def test_a_broken_file_is_named_and_not_shown(tmp_path: Path, text: str) -> None:
    (tmp_path / "secrets.json").write_text(text)
    with pytest.raises(ValueError, match=r"secrets\.json") as caught:
        load_passwords(tmp_path)
    assert caught.value.__cause__ is None
