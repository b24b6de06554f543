"""The whole API as one table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from oslo_policy import policy

from placement import policies
from placement.operation import PlacementApi, Services
from placement.resources.allocations import (
    Allocations,
    ConsumerAllocations,
    ProviderAllocations,
)
from placement.resources.bulk import AllAllocations, Memberships, NewProviders, RankedClaims
from placement.resources.candidates import AllocationCandidates, CandidateColumns
from placement.resources.inventories import Inventories, Inventory
from placement.resources.memberships import ProviderAggregates, ProviderTraits
from placement.resources.names import ResourceClass, ResourceClasses, Trait, Traits
from placement.resources.providers import ResourceProvider, ResourceProviders
from placement.resources.reshaper import Reshaper
from placement.resources.root import Root
from placement.resources.usages import ProviderUsages, Usages
from web.guard import responders_of
from web.protected import Protected, served_by

_PROVIDER = "/resource_providers/{uuid}"

ROUTES: Mapping[str, Callable[[Services], object]] = {
    "/": Root,
    "/resource_classes": ResourceClasses,
    "/resource_classes/{name}": ResourceClass,
    "/resource_providers": ResourceProviders,
    _PROVIDER: ResourceProvider,
    f"{_PROVIDER}/inventories": Inventories,
    f"{_PROVIDER}/inventories/{{resource_class}}": Inventory,
    f"{_PROVIDER}/usages": ProviderUsages,
    f"{_PROVIDER}/aggregates": ProviderAggregates,
    f"{_PROVIDER}/allocations": ProviderAllocations,
    f"{_PROVIDER}/traits": ProviderTraits,
    "/allocations": Allocations,
    "/allocations/{consumer_uuid}": ConsumerAllocations,
    "/micronova/allocations": AllAllocations,
    "/micronova/allocations/{consumer_uuid}": RankedClaims,
    "/micronova/resource_providers": NewProviders,
    "/micronova/resource_providers/memberships": Memberships,
    "/allocation_candidates": AllocationCandidates,
    "/micronova/allocation_candidates": CandidateColumns,
    "/traits": Traits,
    "/traits/{name}": Trait,
    "/usages": Usages,
    "/reshaper": Reshaper,
}


def operations() -> dict[str, list[Protected]]:
    """Return what each rule protects, as the sample policy lists it."""
    found: dict[str, list[Protected]] = {}
    for method, path, described in served_by(ROUTES.items()):
        for name in described.rules:
            found.setdefault(name, [(method, path)])
    return found


def list_rules() -> Iterator[policy.RuleDefault]:
    """Yield the policy's rules with their defaults."""
    return policies.list_rules(operations())


def resources(services: Services) -> dict[str, object]:
    """Return the table as Falcon's resources by path."""
    api = PlacementApi(services)
    return {path: responders_of(api, made(services)) for path, made in ROUTES.items()}
