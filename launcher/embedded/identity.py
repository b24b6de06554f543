"""Who checks an embedded cloud's tokens: its own Keystone, or another's, which it joins.

Both have the same five members, in the order in which the supervisor uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from common.errors import ConfigurationError
from common.process.child import Child
from identity.clouds import project_id, regions, service_credentials, write_client_files
from identity.errors import PortBusy
from identity.keystone import GROUP, Keystone
from identity.layout import catalog, identity_at
from identity.passwords import load_passwords
from launcher.embedded.region import Region
from launcher.embedded.settings import Settings

KEYSTONE_SECONDS = 240


class Identity(Protocol):
    """What the supervisor needs of either."""

    auth_url: str
    joins: bool
    """Whether the catalog is another cloud's, which this one joins."""

    @property
    def process(self) -> Child | None:
        """The process to watch; None: somebody else's."""

    def credentials(self) -> dict[str, str]:
        """Return the login of the services."""

    def start(self, base_url: str, say: Callable[[str], None]) -> None:
        """Return once it answers."""

    def write_client_files(self) -> None:
        """Write the files clients log in with, where this cloud has their passwords."""

    def stop(self) -> None:
        """Give back what it took."""


class OwnKeystone:
    """A Keystone that runs as a child process."""

    joins = False

    def __init__(self, settings: Settings, port: int, region: Region) -> None:
        """Take the port. Raises ConfigurationError."""
        self._state_dir, self._region = settings.state_dir, region
        numbers = {name: int(text) for name, text in settings.chosen.get(GROUP, {}).items()}
        self._keystone = Keystone(
            settings.state_dir,
            settings.host,
            port,
            advertised_host=settings.advertised_host,
            **numbers,
        )
        try:
            self._keystone.listen()
        except PortBusy as error:
            raise ConfigurationError(
                f"{error.message} It is the one after --port: choose another."
            ) from error
        self.auth_url = self._keystone.auth_url
        self._passwords = load_passwords(settings.state_dir)
        self._started = False

    @property
    def process(self) -> Child | None:
        """Keystone's, once it was started."""
        return self._keystone.process if self._started else None

    def credentials(self) -> dict[str, str]:
        """Return the login of the services."""
        return service_credentials(self.auth_url, self._passwords, self._region.name)

    def start(self, base_url: str, say: Callable[[str], None]) -> None:
        """Prepare and start it; return once it answers."""
        endpoints = catalog(self.auth_url, base_url)
        self._keystone.prepare(endpoints, self._passwords, say, self._region.name)
        say("starting")
        self._started = True
        self._keystone.start()
        self._keystone.wait_ready(KEYSTONE_SECONDS)

    def write_client_files(self) -> None:
        """Write `clouds.yaml` and `openrc`."""
        project = project_id(self.auth_url, self._passwords)
        found = regions(self.auth_url, self._passwords, self._region.name)
        write_client_files(self._state_dir, self.auth_url, self._passwords, project, found)

    def stop(self) -> None:
        """End it, and give the port back."""
        self._keystone.stop()


class ForeignKeystone:
    """A Keystone that somebody else runs: this cloud is one more region of its catalog."""

    joins = True
    process: Child | None = None

    def __init__(self, settings: Settings, region: Region) -> None:
        """Read the password. Raises ConfigurationError."""
        joined = settings.keystone
        assert joined is not None, "these settings name no Keystone"
        self.auth_url = f"{identity_at(joined.auth_url).url}/v3"
        self._login: Mapping[str, str] = {joined.user: read_password(joined.password_file)}
        self._user, self._region = joined.user, region

    def credentials(self) -> dict[str, str]:
        """Return the login of the services."""
        return service_credentials(self.auth_url, self._login, self._region.name, self._user)

    def start(self, base_url: str, say: Callable[[str], None]) -> None:
        """Do nothing: it runs already, and the preparation registers this cloud there."""

    def write_client_files(self) -> None:
        """Write none: users have theirs, and choose this cloud by its region."""

    def stop(self) -> None:
        """Do nothing: it isn't ours."""


def read_password(path: Path) -> str:
    """Return the password in a file that only its owner reads. Raises ConfigurationError."""
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"The password file {path} can't be read: {reason}.") from error
    if mode & 0o077:
        raise ConfigurationError(
            f"The password file {path} can be read by others: run chmod 600 {path}."
        )
    if not text:
        raise ConfigurationError(f"The password file {path} is empty.")
    return text
