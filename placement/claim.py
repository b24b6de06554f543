"""What a claim is, and whether it fits: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from placement.errors import InventoryRefused
from placement.snapshot import Inventory

#: (provider UUID, resource class)
Line = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Claim:
    """The new allocations of a consumer, which replace the present ones; none: release.

    `allocations` is {provider UUID: {resource class: amount}}. With `checked`, `generation` must
    be the consumer's current one, None for a consumer that doesn't exist.
    """

    consumer_uuid: str
    allocations: Mapping[str, Mapping[str, int]]
    project_id: str
    user_id: str
    consumer_type: str | None = None
    generation: int | None = None
    checked: bool = True


@dataclass(frozen=True, slots=True)
class RankedClaim:
    """The same resources of any one of several providers, best first, for a new consumer."""

    consumer_uuid: str
    providers: Sequence[str]
    resources: Mapping[str, int]
    project_id: str
    user_id: str

    def on(self, provider_uuid: str) -> Claim:
        """Return the claim on one of them."""
        return Claim(
            self.consumer_uuid, {provider_uuid: self.resources}, self.project_id, self.user_id
        )


class Held(NamedTuple):
    """A provider's inventory, locked, and what the consumers of the claims have of it."""

    provider_id: int
    stock: Inventory
    freed: int


def check(wanted: Mapping[Line, Sequence[int]], held: Mapping[Line, Held]) -> None:
    """Raise InventoryRefused unless all amounts fit; the consumers' present ones count as free.

    `wanted` has the amounts of every consumer. An allocation over capacity may stay or shrink,
    but not grow. A line of `wanted` that isn't in `held` has no inventory.
    """
    missing = sorted({uuid for uuid, _ in wanted} - {uuid for uuid, _ in held})
    if missing:
        names = ", ".join(sorted({name for _, name in wanted}))
        raise _refused(
            f"Inventory for '{names}' on resource provider '{', '.join(missing)}' invalid.",
            [(missing[0], names)],
        )
    for line, amounts in wanted.items():
        uuid, name = line
        if line not in held:
            raise _refused(
                f"Inventory for '{name}' on resource provider '{uuid}' invalid.", [line]
            )
        where = f"Unable to create allocation for '{name}' on resource provider '{uuid}'."
        stock, freed = held[line].stock, held[line].freed
        if any(
            amount < stock.min_unit or amount > stock.max_unit or amount % stock.step_size
            for amount in amounts
        ):
            raise _refused(
                f"{where} The requested amount would violate inventory constraints.", [line]
            )
        after = stock.used - freed + sum(amounts)
        if after > stock.capacity and after > stock.used:
            raise _refused(f"{where} The requested amount would exceed the capacity.", [line])


def fits(claim: Claim, held: Mapping[Line, Held]) -> bool:
    """Return whether a claim would pass `check`."""
    wanted = {
        (uuid, name): (amount,)
        for uuid, resources in claim.allocations.items()
        for name, amount in resources.items()
    }
    try:
        check(wanted, held)
    except InventoryRefused:
        return False
    return True


def _refused(text: str, lines: Sequence[Line]) -> InventoryRefused:
    uuid, name = lines[0]
    return InventoryRefused(
        f"Unable to allocate inventory: {text}", resource_provider=uuid, resource_class=name
    )
