"""The version document, which needs no token."""

from __future__ import annotations

from placement.microversions import VERSIONS
from placement.operation import Answer, Call, Services, operation


class Root:
    """`/`: the range of microversions."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation(None)
    def on_get(self, call: Call) -> Answer:
        """Show the version document."""
        oldest = VERSIONS.text(VERSIONS.oldest)
        version = {
            "id": f"v{oldest}",
            "max_version": VERSIONS.text(VERSIONS.newest),
            "min_version": oldest,
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
        return Answer({"versions": [version]})
