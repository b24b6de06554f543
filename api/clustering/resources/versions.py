"""The version documents: `GET /` answers 300, `GET /v1/` 200; both need no token."""

from __future__ import annotations

from typing import Any

from api.clustering.call import Call, operation
from api.clustering.microversions import VERSIONS
from web.guard import Reply

_WEBHOOKS = "/v1/webhooks/"


def anonymous(path: str) -> bool:
    """Return whether a path needs no token."""
    return path.rstrip("/") in {"", "/v1"} or path.startswith(_WEBHOOKS)


class Versions:
    """The version that there is."""

    @operation()
    def index(self, call: Call) -> Any:
        """List it."""
        return Reply({"versions": [_document(call)]}, 300)

    @operation()
    def show(self, call: Call) -> Any:
        """Show it."""
        return {"version": _document(call)}


def _document(call: Call) -> dict[str, Any]:
    return {
        "id": "1.0",
        "status": "CURRENT",
        "updated": "2016-01-18T00:00:00Z",
        "version": VERSIONS.text(VERSIONS.newest),
        "min_version": VERSIONS.text(VERSIONS.oldest),
        "max_version": VERSIONS.text(VERSIONS.newest),
        "links": [
            {"rel": "self", "href": f"{call.root}/"},
            {"rel": "help", "href": "https://docs.openstack.org/api-ref/clustering"},
        ],
        "media-types": [
            {
                "base": "application/json",
                "type": "application/vnd.openstack.clustering-v1+json",
            }
        ],
    }
