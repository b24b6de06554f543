"""Providers and consumers with defaults, made through the API."""

from __future__ import annotations

import uuid
from typing import Any


def a_uuid() -> str:
    return str(uuid.uuid4())


def a_provider(api: Any, *, parent: str | None = None, **totals: int) -> str:
    """Make a provider with these inventories (VCPU: 8 by default) and return its UUID."""
    one = a_uuid()
    body = {"name": f"node-{one}", "uuid": one, "parent_provider_uuid": parent}
    assert api.simulate_post("/resource_providers", json=body).status_code == 200
    set_inventory(api, one, **(totals or {"VCPU": 8}))
    return one


def set_inventory(api: Any, uuid: str, **totals: int) -> None:
    path = f"/resource_providers/{uuid}"
    generation = api.simulate_get(path).json["generation"]
    inventories = {name: {"total": total} for name, total in totals.items()}
    answer = api.simulate_put(
        f"{path}/inventories",
        json={"resource_provider_generation": generation, "inventories": inventories},
    )
    assert answer.status_code == 200, answer.text


def a_body(generation: int | None = None, **allocations: dict[str, int]) -> dict[str, Any]:
    """Return a PUT /allocations body; keywords are provider UUIDs (via **{uuid: …})."""
    return {
        "allocations": {uuid: {"resources": resources} for uuid, resources in allocations.items()},
        "project_id": "project",
        "user_id": "user",
        "consumer_generation": generation,
        "consumer_type": "INSTANCE",
    }


def used(api: Any, uuid: str) -> dict[str, int]:
    found: dict[str, int] = api.simulate_get(f"/resource_providers/{uuid}/usages").json["usages"]
    return found
