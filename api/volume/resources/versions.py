"""The version documents: `GET /` answers 300, `GET /v3/` 200; both need no token."""

from __future__ import annotations

from typing import Any

from api.volume.call import Call, operation
from api.volume.microversions import VERSIONS
from web.guard import Reply

UPDATED = "2023-08-31T00:00:00Z"


def anonymous(path: str) -> bool:
    """Return whether a path needs no token."""
    return path.rstrip("/") in {"", "/v3"}


class Versions:
    """The version that there is."""

    @operation()
    def index(self, call: Call) -> Any:
        """List it."""
        return Reply(self._document(call), 300)

    @operation()
    def show(self, call: Call) -> Any:
        """Show it."""
        return self._document(call)

    @staticmethod
    def _document(call: Call) -> Any:
        root = call.root.partition("/v3")[0]
        return {
            "versions": [
                {
                    "id": "v3.0",
                    "status": "CURRENT",
                    "version": VERSIONS.text(VERSIONS.newest),
                    "min_version": VERSIONS.text(VERSIONS.oldest),
                    "updated": UPDATED,
                    "links": [{"rel": "self", "href": f"{root}/v3/"}],
                    "media-types": [
                        {
                            "base": "application/json",
                            "type": "application/vnd.openstack.volume+json;version=3",
                        }
                    ],
                }
            ]
        }
