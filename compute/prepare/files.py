"""What services need of a prepared cluster: token, CA, section of the configuration."""

from __future__ import annotations

import configparser
import io
import os
import pwd
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import ConfigurationError
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.settings import Token

_HEAD = "# Written by `micronova proxmox prepare`; options that you add are kept.\n"
_GROUP = "proxmox"


@dataclass(frozen=True)
class Folder:
    """Where they are.

    ``owner``: the services' user, who gets the tokens; the user's group may read the rest.
    """

    path: Path
    owner: str = ""

    @property
    def configuration(self) -> Path:
        """The file with the sections of all clusters, as agents read it."""
        return self.path / "compute.conf"

    def token_file(self, cluster: str) -> Path:
        """Return the file of a cluster's token."""
        return self.path / f"{cluster}.token"

    def ca_file(self, cluster: str) -> Path:
        """Return the file of a cluster's CA."""
        return self.path / f"{cluster}-ca.pem"

    def secret(self, cluster: str, token: Token) -> str:
        """Return the secret of a token by its file; empty where the file is of another token.

        Raises ConfigurationError for a file that others can read, or that is no token's.
        """
        path = self.token_file(cluster)
        if not path.exists():
            return ""
        found = settings.read_token(path, f"{_GROUP}:{cluster}")
        return found.secret if found.id == token.id else ""

    def write_token(self, cluster: str, token: Token, secret: str) -> None:
        """Write the file of a token, at once: nothing shows the secret again."""
        self._write(self.token_file(cluster), f"{token.id}={secret}\n", 0o600)

    def write_authority(self, cluster: str, text: str) -> None:
        """Write the file of a CA."""
        self._write(self.ca_file(cluster), text, 0o644)

    def check(self) -> None:
        """Raise ConfigurationError where nothing can be written, before anything is made."""
        try:
            self.path.mkdir(mode=0o750, parents=True, exist_ok=True)
            if not os.access(self.path, os.W_OK):
                raise PermissionError
            if self.owner:
                os.chown(self.path, -1, pwd.getpwnam(self.owner).pw_gid)
        except KeyError:
            raise ConfigurationError(f"There is no user {self.owner}.") from None
        except OSError as error:
            raise ConfigurationError(f"Nothing can be written to {self.path}: {error}") from error
        self._present()

    def write_configuration(
        self, endpoints: Mapping[str, Iterable[str]], prefixes: Mapping[str, str]
    ) -> None:
        """Write the sections of these clusters; those of others, and further options, are kept.

        ``prefixes``: of the names of hosts, for clusters that have no section yet.
        """
        made = self._present()
        if _GROUP not in made:
            made[_GROUP] = {}
        for name, urls in endpoints.items():
            group = f"{_GROUP}:{name}"
            if group not in made:
                made[group] = {"host_prefix": prefixes[name]} if prefixes.get(name) else {}
            made[group]["endpoints"] = ",".join(urls)
            made[group]["token_file"] = str(self.token_file(name))
            if self.ca_file(name).exists():
                made[group]["ca_file"] = str(self.ca_file(name))
        listed = [one for one in made[_GROUP].get("clusters", "").split(",") if one]
        made[_GROUP]["clusters"] = ",".join(dict.fromkeys([*listed, *endpoints]))
        text = io.StringIO(_HEAD + "\n")
        text.seek(0, io.SEEK_END)
        made.write(text)
        self._write(self.configuration, text.getvalue(), 0o640)

    def _present(self) -> configparser.ConfigParser:
        """Return the present configuration. Raises ConfigurationError for one of other origin."""
        made = configparser.ConfigParser(interpolation=None, delimiters=("=",))
        if not self.configuration.exists():
            return made
        text = self.configuration.read_text(encoding="utf-8")
        if not text.startswith(_HEAD):
            raise ConfigurationError(
                f"{self.configuration} was written by hand, and is left alone: name another "
                "folder with --folder."
            )
        made.read_string(text)
        return made

    def _write(self, path: Path, text: str, mode: int) -> None:
        """Replace a file, whole or not at all; nobody sees it with another mode."""
        descriptor, name = tempfile.mkstemp(dir=self.path, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            if self.owner:
                found = pwd.getpwnam(self.owner)
                os.chown(name, -1 if mode & 0o040 else found.pw_uid, found.pw_gid)
            Path(name).chmod(mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
