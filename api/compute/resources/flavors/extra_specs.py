"""`/flavors/{id}/os-extra_specs`: what a flavor requires besides sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.compute import extra_specs
from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import a_flavor
from api.compute.schemas import flavors as schemas
from common.errors import Invalid, NotFound


class FlavorExtraSpecs:
    """The extra specs of a flavor."""

    @operation("os-flavor-extra-specs:index")
    def index(self, call: Call, flavor_id: str) -> Any:
        """List extra specs."""
        return {"extra_specs": a_flavor(call, flavor_id).extra_specs}

    @operation("os-flavor-extra-specs:show")
    def show(self, call: Call, flavor_id: str, key: str) -> Any:
        """Show an extra spec."""
        return {key: _one(call, flavor_id, key)}

    @operation("os-flavor-extra-specs:create", body=schemas.CREATE_SPECS)
    def create(self, call: Call, flavor_id: str) -> Any:
        """Set extra specs; the answer repeats them."""
        _set(call, flavor_id, call.body["extra_specs"])
        return call.body

    @operation("os-flavor-extra-specs:update", body=schemas.UPDATE_SPECS)
    def update(self, call: Call, flavor_id: str, key: str) -> Any:
        """Set one extra spec."""
        if key not in call.body:
            raise Invalid("Request body and URI mismatch")
        _set(call, flavor_id, call.body)
        return call.body

    @operation("os-flavor-extra-specs:delete")
    def delete(self, call: Call, flavor_id: str, key: str) -> None:
        """Delete an extra spec."""
        _one(call, flavor_id, key)
        call.conductor.set_flavor_extra_specs(call.ctxt, flavor_id, {}, (key,))


def _one(call: Call, flavor_id: str, key: str) -> str:
    specs = a_flavor(call, flavor_id).extra_specs
    if key not in specs:
        raise NotFound(f"Flavor {flavor_id} has no extra specs with key {key}.")
    return specs[key]


def _set(call: Call, flavor_id: str, specs: Mapping[str, Any]) -> None:
    texts = {key: str(value) for key, value in specs.items()}
    extra_specs.check(texts, call.version)
    call.conductor.set_flavor_extra_specs(call.ctxt, flavor_id, texts)
