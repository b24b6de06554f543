"""`/profile-types`, `/policy-types`, `/build-info`, `/services`: what there is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.clustering.call import Call, operation
from api.clustering.policy_specs import POLICY_TYPES
from api.clustering.specs import PROFILE_TYPES, PROPERTIES
from common.errors import Invalid, NotFound
from common.release import VERSION
from common.resources.groups import DELETION_TYPE, First, Repair

_SUPPORTED = [{"status": "SUPPORTED", "since": "2016.04"}]
_LISTED_SINCE = 5


class Types:
    """The types of profiles, or of policies."""

    def __init__(self, noun: str, found: Mapping[str, str]) -> None:
        self.noun, self._types = noun, found

    @operation("{noun}_types:index")
    def index(self, call: Call) -> Any:
        """List the types."""
        return {f"{self.noun}_types": [self._shown(call, name) for name in self._types]}

    @operation("{noun}_types:get")
    def show(self, call: Call, name: str) -> Any:
        """Show a type."""
        kind = self._known(name)
        schema = _PROFILE if self.noun == "profile" else _POLICIES[kind]
        version = self._types[kind]
        shown = {"name": f"{kind}-{version}", "schema": schema}
        supported = call.since(_LISTED_SINCE, support_status={version: _SUPPORTED})
        return {f"{self.noun}_type": {**shown, **supported}}

    @operation("{noun}_types:get", errors={NotFound: Invalid})
    def operations(self, call: Call, name: str) -> Any:
        """List the operations of a type: none."""
        self._known(name)
        return {"operations": {}}

    def _known(self, name: str) -> str:
        kind, _, version = name.partition("-")
        if kind not in self._types or version not in ("", "1.0", self._types[kind]):
            raise NotFound(f"The {self.noun}_type '{name}' could not be found.")
        return kind

    def _shown(self, call: Call, name: str) -> dict[str, Any]:
        version = self._types[name]
        if call.version < _LISTED_SINCE:
            return {"name": f"{name}-{version}"}
        return {"name": name, "version": version, "support_status": {version: _SUPPORTED}}


def _of(kind: str, description: str, *, required: bool = False, **more: Any) -> dict[str, Any]:
    shown = {"type": kind, "description": description, "required": required, "updatable": False}
    return {**shown, **more}


_PROFILE = {
    name: _of("String", f"As in a create of a server: {name}.", required=name == "flavor")
    for name in sorted(PROPERTIES)
}
_POLICIES: Mapping[str, Mapping[str, Any]] = {
    DELETION_TYPE: {
        "criteria": _of(
            "String",
            "Which nodes leave first, after those that are not well and those of crowded hosts.",
            constraints=[{"type": "AllowedValues", "constraint": [str(one) for one in First]}],
        ),
        "destroy_after_deletion": _of(
            "Boolean", "Whether servers of nodes that leave are deleted."
        ),
    },
    "senlin.policy.health": {
        "detection": _of(
            "Map",
            "Its interval, node_update_timeout and detection_modes: of NODE_STATUS_POLL_URL the "
            "poll_url, whose host is {nodename}. What happens to servers is seen at once.",
        ),
        "recovery": _of(
            "Map",
            f"Its actions, one after the other: {', '.join(str(one) for one in Repair)}.",
        ),
    },
}
PROFILE = Types("profile", PROFILE_TYPES)
POLICY = Types("policy", POLICY_TYPES)


class About:
    """What serves the API."""

    @operation("build_info:build_info")
    def build_info(self, call: Call) -> Any:
        """Show the release."""
        return {"build_info": {"api": {"revision": VERSION}, "engine": {"revision": VERSION}}}

    @operation("services:index")
    def services(self, call: Call) -> Any:
        """List services: the compute API lists them."""
        return {"services": []}
