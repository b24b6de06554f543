"""The Image API's version document."""

from __future__ import annotations

from typing import Any

from api.plain import Call, operation
from web.guard import Reply

#: Glance's minor versions without its cache and its several stores, newest first
VERSIONS = (
    ("v2.9", "CURRENT"),
    *((f"v2.{minor}", "SUPPORTED") for minor in range(7, -1, -1)),
)


class Versions:
    """`GET /` answers 300, `GET /versions` 200; both need no token."""

    @operation()
    def on_get(self, call: Call) -> Any:
        """List the versions."""
        links = [{"rel": "self", "href": f"{call.root}/v2/"}]
        versions = [
            {"id": version, "status": status, "links": links} for version, status in VERSIONS
        ]
        return Reply({"versions": versions}, 200 if call.path == "/versions" else 300)


def anonymous(path: str) -> bool:
    """Return whether a path needs no token."""
    return path.rstrip("/") in {"", "/versions"}
