"""Audits, and restores, as commands begin them and wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.errors import CommandFailed

_LOOK_SECONDS = 0.5


def answer(response: Any) -> Any:
    """Return the JSON of a response. Raises the SDK's error."""
    from openstack.exceptions import raise_from_response

    raise_from_response(response)
    return response.json()


def fresh(cloud: Any, seconds: float) -> Mapping[str, Any]:
    """Return an audit that ran now. Raises CommandFailed when it fails or takes longer."""
    return wait_for(cloud, answer(cloud.compute.post("/audits"))["audit"]["id"], seconds)


def wait_for(cloud: Any, audit_id: int, seconds: float) -> Mapping[str, Any]:
    """Return an audit once it is done. Raises CommandFailed when it fails or takes longer."""
    compute = cloud.compute
    for _ in range(max(1, int(seconds / _LOOK_SECONDS))):
        audit: Mapping[str, Any] = answer(compute.get(f"/audits/{audit_id}"))["audit"]
        if audit["state"] == "done":
            return audit
        if audit["state"] == "failed":
            raise CommandFailed(f"Audit {audit_id} failed: {audit['report'].get('error')}")
        cloud.pause(_LOOK_SECONDS)
    raise CommandFailed(f"Audit {audit_id} is not done after {seconds:g} s")
