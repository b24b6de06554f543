"""The Image API's version document."""

from __future__ import annotations

import falcon

from web.wsgi import send_json

#: Glance's minor versions without its cache and its several stores, newest first
VERSIONS = (
    ("v2.9", "CURRENT"),
    *((f"v2.{minor}", "SUPPORTED") for minor in range(7, -1, -1)),
)


class Versions:
    """`GET /` answers 300, `GET /versions` 200; both need no token."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Which versions there are and where."""
        href = f"{req.forwarded_prefix}/v2/"
        versions = [
            {"id": version, "status": status, "links": [{"rel": "self", "href": href}]}
            for version, status in VERSIONS
        ]
        explicit = req.path == "/versions"
        status = falcon.HTTP_200 if explicit else falcon.HTTP_300
        send_json(resp, {"versions": versions}, status)


def anonymous(path: str) -> bool:
    """Whether the path is served without a token."""
    return path.rstrip("/") in {"", "/versions"}
