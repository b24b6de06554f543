"""`/extensions`: former extensions of Nova's API, which clients still ask for, and our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute.call import Call
from api.compute.extension_names import EXTENSIONS, LEGACY, OWN
from api.compute.operation import operation
from common.errors import NotFound

#: the fields that Nova answers alike for all
_NAMESPACE, _UPDATED = "http://docs.openstack.org/compute/ext/fake_xml", "2014-12-03T00:00:00Z"


class Extensions:
    """The former extensions: Nova's list, whole, and what Nova doesn't have."""

    @operation("extensions")
    def index(self, call: Call) -> Any:
        """List extensions by alias."""
        return {"extensions": [_view(*one) for one in sorted(_known(call).items())]}

    @operation("extensions")
    def show(self, call: Call, alias: str) -> Any:
        """Show an extension."""
        found = _known(call).get(alias)
        if found is None:
            raise NotFound(f"There is no extension {alias}.")
        return {"extension": _view(alias, found)}


def _known(call: Call) -> Mapping[str, tuple[str, str]]:
    own = {alias: (name, text) for alias, (name, text, _) in OWN.items()}
    return {**EXTENSIONS, **(LEGACY if call.links.is_legacy else {}), **own}


def _view(alias: str, words: tuple[str, str]) -> dict[str, Any]:
    name, description = words
    return {
        "alias": alias,
        "description": description,
        "links": [],
        "name": name,
        "namespace": _NAMESPACE,
        "updated": _UPDATED,
    }
