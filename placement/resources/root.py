"""The version document, open to everybody."""

from __future__ import annotations

from placement.microversions import VERSIONS
from placement.operation import Answer, Call, Services, operation


class Root:
    """`/`: which microversions there are."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation(None)
    def on_get(self, call: Call) -> Answer:
        """Tell the versions."""
        oldest = VERSIONS.text(VERSIONS.oldest)
        version = {
            "id": f"v{oldest}",
            "max_version": VERSIONS.text(VERSIONS.newest),
            "min_version": oldest,
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
        return Answer({"versions": [version]})
