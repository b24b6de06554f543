"""What a cluster of Proxmox VE needs before it is used, for the command line."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from common.errors import ConfigurationError
from common.findings import Finding
from compute.hypervisor.proxmox.settings import DEFAULT_PORT
from compute.prepare import plan, seen
from compute.prepare.files import Folder
from compute.prepare.lines import lines as lines  # noqa: PLC0414 - a part of this module
from compute.prepare.plan import Change
from compute.prepare.root import Place, Root, Untrusted, shown_fingerprint
from compute.prepare.wanted import NEWEST as NEWEST  # noqa: PLC0414
from compute.prepare.wanted import Wanted
from compute.prepare.wanted import wanted as wanted  # noqa: PLC0414
from launcher import configuration
from launcher.embedded.hypervisors import REAL_NAME

__all__ = ["NEWEST", "Folder", "Place", "Preparation", "Untrusted", "Wanted", "lines", "wanted"]

_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
_FINGERPRINT = re.compile(r"([0-9A-Fa-f]{2}:?){31}[0-9A-Fa-f]{2}")


def places(given: Sequence[str], ca_file: str | None, fingerprint: str | None) -> list[Place]:
    """Return where the clusters of ``[name=]URL`` are, one for each name and URL.

    Raises ConfigurationError, one line.
    """
    found = []
    for text in given:
        name, equals, url = (
            text.partition("=") if not text.startswith("https:") else ("", "", text)
        )
        host, port = _address(url)
        if equals and _NAME.fullmatch(name) is None:
            raise ConfigurationError(f"{name} is no name of a cluster.")
        found.append(Place(name or REAL_NAME, host, port, ca_file))
    if ca_file is not None and not Path(ca_file).is_file():
        raise ConfigurationError(f"--ca {ca_file} is no file.")
    if fingerprint is None:
        return found
    if _FINGERPRINT.fullmatch(fingerprint) is None or len(found) != 1:
        raise ConfigurationError("--fingerprint is the SHA-256 of the certificate of one address.")
    return [replace(found[0], fingerprint=fingerprint)]


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port or DEFAULT_PORT
    except ValueError:
        port = 0
    if parts.scheme != "https" or not parts.hostname or not port or parts.username:
        raise ConfigurationError(f"{url} is no address such as https://pve1.example.org:8006.")
    return parts.hostname, port


@dataclass
class Preparation:
    """A cluster that is being prepared; ``places`` are addresses of its nodes."""

    places: list[Place]
    folder: Folder
    wanted: Wanted
    regenerate: bool = False
    """Whether a token whose secret isn't known here may get another one."""
    root: Root = field(init=False)
    seen: seen.Seen = field(init=False)
    changes: list[Change] = field(init=False)

    def __post_init__(self) -> None:
        self.root = Root(self.places[0])

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.places[0].cluster

    def fingerprint(self) -> str:
        """Return what its certificate is known by."""
        return shown_fingerprint(self.places[0])

    def trust(self, fingerprint: str) -> None:
        """Take the certificate that is shown for the cluster's."""
        self.close()
        self.root = Root(replace(self.places[0], fingerprint=fingerprint))

    def close(self) -> None:
        """Close the connections, and forget the ticket."""
        self.root.close()

    def look(self) -> None:
        """Read what the cluster has, and compare. Raises ConfigurationError or Refused."""
        token = self.wanted.token
        secret = self.folder.secret(self.name, token)
        found = seen.read(self.root.get, token)
        # Of a disabled user nobody can say.
        known = bool(secret) and (not found.enabled or self.root.is_secret(token.id, secret))
        self.seen = replace(found, secret_known=known)
        if found.token is not None and not known and not self.regenerate:
            raise ConfigurationError(
                f"Cluster {self.name} has a token {token.id}, whose secret isn't in "
                f"{self.folder.token_file(self.name)}: put it there, or name another token with "
                "--token, or give this one another secret with --regenerate."
            )
        self.changes = plan.changes(self.wanted, self.seen)

    def shown(self) -> Iterator[str]:
        """Yield lines about what the cluster has and gets."""
        nodes = ", ".join(self.seen.nodes)
        yield f"Cluster {self.name}: Proxmox VE {self.seen.version}, nodes: {nodes}."
        yield from (f"  {one.what}" for one in self.changes)
        if not self.changes:
            yield "  Nothing is missing."

    def make(self) -> Iterator[str]:
        """Make what is missing; yield a line when each is made. Raises Refused."""
        for one in self.changes:
            answer = self.root.call(one.method, one.path, one.values)
            if one.makes_secret:
                self.folder.write_token(self.name, self.wanted.token, str(answer["value"]))
            yield f"Cluster {self.name}: {one.what}"
        if self.root.place.fingerprint:
            self._write_authority()

    def _write_authority(self) -> None:
        """Have the services trust the cluster's own CA, which the system doesn't know."""
        text = self.root.authority()
        if text is None:
            raise ConfigurationError(
                f"Cluster {self.name} doesn't show the certificate of its CA: copy "
                "/etc/pve/pve-root-ca.pem of a node, and name it with --ca."
            )
        self.folder.write_authority(self.name, text)


def prepared(given: Iterable[Place], folder: Folder, wanted: Wanted) -> list[Preparation]:
    """Return the clusters, in their order; several addresses of one name are one cluster."""
    by_name: dict[str, list[Place]] = {}
    for place in given:
        by_name.setdefault(place.cluster, []).append(place)
    return [Preparation(places, folder, wanted) for places in by_name.values()]


def write_configuration(folder: Folder, clusters: Sequence[Preparation]) -> None:
    """Write the sections of prepared clusters."""
    for one in clusters:
        if one.root.place.ca_file:
            folder.write_authority(
                one.name, Path(one.root.place.ca_file).read_text(encoding="utf-8")
            )
    endpoints = {one.name: [place.url for place in one.places] for one in clusters}
    folder.write_configuration(endpoints, _prefixes(clusters))


def _prefixes(clusters: Sequence[Preparation]) -> Mapping[str, str]:
    """Return prefixes for the hosts of clusters that have nodes of the same name."""
    count = collections.Counter(node for one in clusters for node in one.seen.nodes)
    return {
        one.name: f"{one.name}-"
        for one in clusters
        if any(count[node] > 1 for node in one.seen.nodes)
    }


def diagnose(folder: Folder) -> tuple[list[str], tuple[Finding, ...]]:
    """Examine the clusters of the written configuration with their tokens, as the doctor does."""
    from compute.doctor import examine

    conf = configuration.load([str(folder.configuration)])
    examined = examine.examine(conf)
    return list(examine.lines(examined)), examined.findings
