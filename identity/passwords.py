"""The embedded cloud's passwords: made once, kept in `secrets.json`."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path

from identity.layout import EMBEDDED, PEOPLE
from identity.private_file import private_directory, write_private

USERS = (*PEOPLE, EMBEDDED)
"""The users of the embedded Keystone; `micronova` is the services' own."""

_RANDOM_BYTES = 24


def load_passwords(
    state_dir: Path, given: Mapping[str, str] | None = None, users: Sequence[str] = USERS
) -> dict[str, str]:
    """Return {user name: password} of users, making and storing those that are missing.

    `given` passwords win and are stored. Other content of the file is kept.
    Raises ValueError when the file exists and isn't what was written.
    """
    path = state_dir / "secrets.json"
    content = _read(path)
    stored = content.get("passwords", {})
    passwords = {
        user: (given or {}).get(user) or stored.get(user) or secrets.token_urlsafe(_RANDOM_BYTES)
        for user in users
    }
    if passwords != stored:
        private_directory(state_dir)
        content["passwords"] = passwords
        write_private(path, json.dumps(content, indent=2) + "\n")
    return passwords


def _read(path: Path) -> dict[str, dict[str, str]]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except json.JSONDecodeError:
        # The decoder's own error carries the document, passwords included.
        raise ValueError(f"{path} is not valid JSON; move it away or mend it") from None
    if not isinstance(content, dict) or not isinstance(content.get("passwords", {}), dict):
        raise ValueError(f'{path} must be a JSON object with an object "passwords"')
    return content
