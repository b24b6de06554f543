"""The region of an embedded cloud: chosen at its first start, and where its APIs were since.

`<state_dir>/region.json` has the name and the addresses that the catalog may have. An address is
noted before it is registered, so that a start that was interrupted finds its own endpoints again.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from common.errors import ConfigurationError
from identity.layout import REGION
from identity.private_file import write_private

_FILE = "region.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class Region:
    """A region's name, and the base URLs under which its cloud may be in the catalog."""

    name: str
    base_urls: tuple[str, ...] = ()

    def with_url(self, base_url: str) -> Region:
        """Return the region with one more address."""
        return replace(self, base_urls=tuple(dict.fromkeys((*self.base_urls, base_url))))

    def only(self, base_url: str) -> Region:
        """Return the region with this address alone, which the catalog has now."""
        return replace(self, base_urls=(base_url,))


def valid_name(text: str) -> str:
    """Return a region's name. Raises ValueError for what is none."""
    if not _NAME.fullmatch(text):
        raise ValueError(f"{text!r}: letters, digits, '.', '_' and '-', 64 at most")
    return text


def chosen(state_dir: Path, asked: str | None) -> Region:
    """Return the cloud's region: that of its first start; at the first start, what is asked for.

    Raises ConfigurationError when another one is asked for: endpoints and `clouds.yaml` files of
    users name it.
    """
    try:
        stored = json.loads((state_dir / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Region(asked or REGION)
    known = Region(stored["name"], tuple(stored["base_urls"]))
    if asked not in (None, known.name):
        raise ConfigurationError(
            f"The cloud in {state_dir} is region {known.name} since its first start: leave "
            "--region out, or choose another --state-dir."
        )
    return known


def note(state_dir: Path, region: Region) -> None:
    """Write the region down."""
    write_private(state_dir / _FILE, json.dumps(asdict(region)) + "\n")
