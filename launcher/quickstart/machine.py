"""Where a cloud on one machine has its files, and what it is asked for."""

from __future__ import annotations

import grp
import ipaddress
import os
import pwd
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from common.errors import ConfigurationError

ROOT_MODE, SHARED_MODE = 0o600, 0o640


@dataclass(frozen=True)
class Ports:
    """Ports of one machine's services."""

    public: int = 8774
    identity: int = 8775
    console: int = 8776
    placement: int = 8778
    dashboard: int = 8780

    @classmethod
    def at(cls, first: int) -> Ports:
        """Return ports from the first one on, in the order of the usual ones."""
        return cls(first, first + 1, first + 2, first + 4, first + 6)


@dataclass(frozen=True)
class Machine:
    """Folders, user and address."""

    folder: Path
    """Of the configuration: /etc/micronova."""
    state: Path
    """Of what services write: /var/lib/micronova."""
    user: str
    """Of the services."""
    address: str
    """By which clients reach the machine."""
    ports: Ports
    postgres: str = ""
    """URL of PostgreSQL's superuser; empty: this machine's, by its user postgres."""
    rabbitmq: str = ""
    """URL of a user of RabbitMQ; empty: this machine's, where one is made."""

    @property
    def host(self) -> str:
        """The address as it stands in URLs."""
        return f"[{self.address}]" if ":" in self.address else self.address

    @property
    def gid(self) -> int:
        """The group of the services."""
        return pwd.getpwnam(self.user).pw_gid

    @property
    def uid(self) -> int:
        """Their user's number."""
        return pwd.getpwnam(self.user).pw_uid

    def url(self, port: int) -> str:
        """Return the URL of a port, as services and clients use it."""
        return f"http://{self.host}:{port}"

    def check(self) -> None:
        """Raise ConfigurationError where this can't be done here, before anything is made."""
        try:
            is_loopback = ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            is_loopback = self.address == "localhost"
        if not is_loopback:
            raise ConfigurationError(
                f"{self.address} is reached by other machines, and the services speak plain HTTP. "
                "Leave 127.0.0.1, and put a proxy with TLS before it, as docs/deploy.md says."
            )
        try:
            pwd.getpwnam(self.user), grp.getgrgid(self.gid)
        except KeyError:
            raise ConfigurationError(
                f"There is no user {self.user}: useradd --system --home {self.state} {self.user}"
            ) from None
        if os.geteuid() not in (0, self.uid):
            raise ConfigurationError("This makes files of other users: run it as root.")

    def make_folders(self) -> None:
        """Make both folders, as the Debian package does."""
        for path, owner, mode in (
            (self.folder, -1, 0o750),
            (self.state, self.uid, 0o750),
            (self.state / "identity", self.uid, 0o700),
            (self.state / "dashboard", self.uid, 0o700),
            (self.state / "spool", self.uid, 0o750),
            (self.state / "log", self.uid, 0o750),
        ):
            path.mkdir(parents=True, exist_ok=True)
            os.chown(path, owner, self.gid)
            path.chmod(mode)

    def write(self, name: str, text: str, mode: int = SHARED_MODE) -> bool:
        """Replace a file of the configuration, whole or not at all; return whether it changed.

        With ``SHARED_MODE`` the services' group may read it, else root alone.
        """
        path = self.folder / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return False
        descriptor, part = tempfile.mkstemp(dir=self.folder, prefix=f".{name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            os.chown(part, -1, self.gid if mode & 0o040 else -1)
            Path(part).chmod(mode)
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
        return True


def program(name: str, package: str) -> str:
    """Return the path of a program. Raises ConfigurationError, which names its package."""
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise ConfigurationError(f"There is no {name} here: apt-get install {package}")
    return found
