"""The files that browsers get: the page, and the release of noVNC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

STATIC = Path(__file__).parent / "static"
_KINDS: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
#: nothing but our own files and our own websockets; noVNC draws its pointers as data
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self' ws://{host} wss://{host}"
)


_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]*")


@dataclass(frozen=True)
class Page:
    """A file with its HTTP headers."""

    content: bytes
    headers: tuple[tuple[str, str], ...]


class Pages:
    """The files by path, read once: nothing else on the disk can be asked for."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._files = {
            f"/{path.relative_to(folder).as_posix()}": (path.read_bytes(), _KINDS[path.suffix])
            for path in folder.rglob("*")
            if path.suffix in _KINDS and path.is_file()
        }

    def get(self, target: str, host: str) -> Page | None:
        """Return the file that a request's target names; None for another one."""
        found = self._files.get(urlsplit(target).path)
        if found is None:
            return None
        content, kind = found
        lasting = not kind.startswith("text/html")
        return Page(
            content,
            (
                ("Content-Type", kind),
                ("Content-Length", str(len(content))),
                ("Cache-Control", "max-age=3600" if lasting else "no-store"),
                ("Content-Security-Policy", _POLICY.format(host=_plain(host))),
                ("Referrer-Policy", "no-referrer"),
                ("X-Content-Type-Options", "nosniff"),
            ),
        )


def _plain(host: str) -> str:
    """Return a Host header that can stand in another header, or nothing."""
    return host if _HOST.fullmatch(host) else ""
