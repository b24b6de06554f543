"""Scripts, styles and pictures: read once, addressed by content, kept by browsers for a year."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import falcon

STATIC = Path(__file__).parent / "static"

KINDS: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


class StaticFiles:
    """The files by address, `/static/HASH/NAME`: nothing else on the disk can be asked for."""

    def __init__(self, folder: Path = STATIC) -> None:
        self._addresses: dict[str, str] = {}
        self._files: dict[str, tuple[bytes, str]] = {}
        for path in sorted(folder.rglob("*")):
            if path.suffix in KINDS and path.is_file():
                content = path.read_bytes()
                name = path.relative_to(folder).as_posix()
                mark = hashlib.sha256(content).hexdigest()[:16]
                self._addresses[name] = f"/static/{mark}/{name}"
                self._files[f"{mark}/{name}"] = content, KINDS[path.suffix]

    def address(self, name: str) -> str:
        """Return where a file is, below the dashboard's root."""
        return self._addresses[name]

    def __call__(self, req: Any, resp: Any, **groups: str | None) -> None:
        """Send the file that the address names as `path` (a Falcon sink)."""
        found = self._files.get(groups["path"] or "")
        if found is None:
            raise falcon.HTTPNotFound
        resp.data, resp.content_type = found
        resp.set_header("Cache-Control", "public, max-age=31536000, immutable")
        resp.set_header("X-Content-Type-Options", "nosniff")
