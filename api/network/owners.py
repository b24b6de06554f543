"""The project that something is made for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.plain import Call
from common.errors import Invalid
from web.policy import Enforcer


def owner(call: Call, policy: Enforcer, noun: str, asked: Mapping[str, Any]) -> str:
    """Return the project that a body names, or that of the token. Raises Invalid."""
    named = {asked[name] for name in ("project_id", "tenant_id") if name in asked}
    if len(named) > 1:
        raise Invalid("'project_id' and 'tenant_id' do not match")
    own = call.ctxt.project_id or ""
    project_id = next(iter(named), own)
    if not project_id:
        raise Invalid(f"A {noun} needs a project: neither the request nor its token names one.")
    if project_id != own and not policy.allows(call.ctxt, "admin_only", {}):
        raise Invalid(
            "Specifying 'project_id' or 'tenant_id' other than the authenticated project in "
            "request requires admin privileges"
        )
    return str(project_id)
