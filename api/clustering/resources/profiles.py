"""`/profiles`: what members' servers are made of."""

from __future__ import annotations

from typing import Any

from api.clustering import schemas, specs, views
from api.clustering.call import Call, changes, operation, the
from conductor.rpc.groups import NewProfile
from db.reads.groups.groups import PROFILES, Profile
from web.guard import Reply

_THE = the(PROFILES)


class Profiles:
    """The profiles of a project."""

    @operation("profiles:index")
    def index(self, call: Call) -> Any:
        """List profiles."""
        found = call.listed(PROFILES, call.filters("name", "type"))
        return {"profiles": [views.profile(one) for one in found]}

    @operation("profiles:create", body=schemas.PROFILE, status=201)
    def create(self, call: Call) -> Any:
        """Make a profile, whose spec is checked as a create of a server is."""
        asked = call.body["profile"]
        request = specs.create_of(call, asked["spec"])
        new = NewProfile(
            asked["name"].strip(), asked["spec"], request, asked.get("metadata") or {}
        )
        made = call.conductor.create_profile(call.ctxt, new)
        location = {"Location": f"{call.root}/profiles/{made}"}
        return Reply({"profile": views.profile(call.find(PROFILES, made))}, headers=location)

    @operation("profiles:validate", body=schemas.PROFILE_SPEC)
    def validate(self, call: Call) -> Any:
        """Check the spec of a profile, and make none."""
        spec = call.body["profile"]["spec"]
        specs.create_of(call, spec)
        return {"profile": views.valid_profile(call, spec)}

    @operation("profiles:get", on=_THE)
    def show(self, call: Call, profile: Profile) -> Any:
        """Show a profile."""
        return {"profile": views.profile(profile)}

    @operation("profiles:update", body=schemas.PROFILE_UPDATE, on=_THE)
    def update(self, call: Call, profile: Profile) -> Any:
        """Change the name or the metadata of a profile."""
        asked = call.body["profile"]
        changed = changes(name=asked.get("name"), meta=asked.get("metadata"))
        call.conductor.change_profile(call.ctxt, profile.id, changed)
        return {"profile": views.profile(call.find(PROFILES, profile.id))}

    @operation("profiles:delete", status=204, on=_THE)
    def delete(self, call: Call, profile: Profile) -> None:
        """Delete a profile that nothing uses."""
        call.conductor.delete_profile(call.ctxt, profile.id)
