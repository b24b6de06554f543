"""`/policies`: how groups shrink, and how members that are not well are repaired."""

from __future__ import annotations

from typing import Any

from api.clustering import policy_specs, schemas, views
from api.clustering.call import Call, operation, the
from db.reads.groups.groups import POLICIES, Policy
from web.guard import Reply

_THE = the(POLICIES)


class Policies:
    """The policies of a project."""

    @operation("policies:index")
    def index(self, call: Call) -> Any:
        """List policies."""
        found = call.listed(POLICIES, call.filters("name", "type"))
        return {"policies": [views.policy(one) for one in found]}

    @operation("policies:create", body=schemas.POLICY, status=201)
    def create(self, call: Call) -> Any:
        """Make a policy."""
        asked = call.body["policy"]
        policy_specs.check_policy(asked["spec"])
        made = call.conductor.create_policy(call.ctxt, asked["name"].strip(), asked["spec"])
        location = {"Location": f"{call.root}/policies/{made}"}
        return Reply({"policy": views.policy(call.find(POLICIES, made))}, headers=location)

    @operation("policies:validate", body=schemas.POLICY_SPEC)
    def validate(self, call: Call) -> Any:
        """Check the spec of a policy, and make none."""
        spec = call.body["policy"]["spec"]
        policy_specs.check_policy(spec)
        return {"policy": views.valid_policy(call, spec)}

    @operation("policies:get", on=_THE)
    def show(self, call: Call, policy: Policy) -> Any:
        """Show a policy."""
        return {"policy": views.policy(policy)}

    @operation("policies:update", body=schemas.POLICY_RENAME, on=_THE)
    def update(self, call: Call, policy: Policy) -> Any:
        """Rename a policy."""
        call.conductor.change_policy(call.ctxt, policy.id, call.body["policy"]["name"].strip())
        return {"policy": views.policy(call.find(POLICIES, policy.id))}

    @operation("policies:delete", status=204, on=_THE)
    def delete(self, call: Call, policy: Policy) -> None:
        """Delete a policy that no cluster has."""
        call.conductor.delete_policy(call.ctxt, policy.id)
