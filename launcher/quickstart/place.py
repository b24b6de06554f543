"""Where the cloud of a folder is, by its files: what a later run doesn't name is as it was.

Else a second run would make another Keystone or other databases, and a removal would remove the
folders of another cloud and leave this one's.
"""

from __future__ import annotations

import pwd
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from oslo_config import cfg

from common import digits
from common.errors import ConfigurationError
from common.rpc import senders
from launcher.quickstart.machine import Machine, Ports
from launcher.quickstart.memory import NAME

#: by which clients reach the machine
_ADDRESS = "127.0.0.1"
_USER, _STATE = "micronova", Path("/var/lib/micronova")
_POSTGRES = f"{_ADDRESS}:5432"
"""The server of this machine, where none is named."""

_Sections = Mapping[str, Mapping[str, list[str]]]


@dataclass(frozen=True)
class Place:
    """What a run made, as far as it came; None, or empty: not known."""

    state: Path | None = None
    user: str | None = None
    ports: Ports | None = None
    postgres: str = ""
    """Host and port."""
    rabbitmq: str = ""
    """The URL that was given."""


def of(folder: Path) -> Place:
    """Return where the cloud of a folder is. Raises ConfigurationError for a damaged file."""
    try:
        if not (folder / NAME).exists():
            return Place()
        identity = _read(folder / "identity.conf")
        conductor = _read(folder / "conductor.conf")
    except PermissionError:
        return Place()  # what it is made of is looked at as root
    inside = _value(identity, "identity_service", "state_dir")
    port = digits.number(_value(identity, "identity_service", "port"), most=65_535)
    address = urlsplit(_value(conductor, "database", "connection"))
    return Place(
        Path(inside).parent if inside else None,
        _owner(Path(inside)) if inside else None,
        Ports.at(port - 1) if port else None,
        f"{address.hostname}:{address.port}" if address.hostname else "",
        _given(_value(conductor, "DEFAULT", "transport_url")),
    )


def machine(
    folder: Path,
    state: Path | None = None,
    user: str | None = None,
    ports: Ports | None = None,
    postgres: str = "",
    rabbitmq: str = "",
) -> Machine:
    """Return the machine by these values; None, or empty: the value of the previous run, if any.

    Raises ConfigurationError where that is a PostgreSQL of another machine: its superuser's
    password is not stored.
    """
    before = of(folder)
    if not postgres and before.postgres not in ("", _POSTGRES):
        raise ConfigurationError(
            f"This cloud's databases are at {before.postgres}: name its superuser by --postgres, "
            "or MICRONOVA_POSTGRES."
        )
    return Machine(
        folder,
        state or before.state or _STATE,
        user or before.user or _USER,
        _ADDRESS,
        ports or before.ports or Ports(),
        postgres,
        rabbitmq or before.rabbitmq,
    )


def _read(path: Path) -> _Sections:
    sections: dict[str, dict[str, list[str]]] = {}
    try:
        cfg.ConfigParser(str(path), sections).parse()
    except FileNotFoundError:
        return {}
    except cfg.ParseError as error:
        raise ConfigurationError(f"{path} can't be read: {error}") from None
    return sections


def _value(sections: _Sections, group: str, option: str) -> str:
    """Return an option's value as it was written; empty: there is none."""
    return (sections.get(group, {}).get(option) or [""])[-1].replace("$$", "$")


def _owner(path: Path) -> str | None:
    try:
        return pwd.getpwuid(path.stat().st_uid).pw_name
    except (FileNotFoundError, KeyError):
        return None


def _given(url: str) -> str:
    """Return a broker's URL unless it is that of a user that was made here."""
    made = url.startswith(f"rabbit://{senders.user_of(senders.CONDUCTOR)}:")
    return "" if made and url.endswith(f"@{_ADDRESS}:5672/") else url
