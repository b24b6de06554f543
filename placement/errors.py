"""What placement adds to the tree of errors.

The codes are the OpenStack Placement API's, which its clients know; answers give every other error
the code `placement.undefined_code`.
"""

from __future__ import annotations

from common.errors import Conflict, GenerationConflict, Invalid, MicronovaError, NotFound


class ConcurrentUpdate(GenerationConflict):
    """The generation named is not the current one: read again, decide again."""

    code = "placement.concurrent_update"
    sentence = (
        "Another thread concurrently updated the resource provider data. Please retry your update"
    )


class InventoryInUse(Conflict):
    """An inventory that has allocations can't be deleted."""

    code = "placement.inventory.inuse"


class DuplicateName(Conflict):
    """A provider of that name or UUID exists already."""

    code = "placement.duplicate_name"


class ProviderInUse(Conflict):
    """A provider that has allocations can't be deleted."""

    code = "placement.resource_provider.inuse"


class ProviderHasChildren(Conflict):
    """A provider that is a parent can't be deleted."""

    code = "placement.resource_provider.cannot_delete_parent"


class InventoryRefused(Conflict):
    """An allocation exceeds the inventory's capacity, or breaks its units."""

    code = "micronova.inventory_refused"


class ProviderUnknown(Invalid):
    """A request names a provider that doesn't exist."""

    code = "placement.resource_provider.not_found"


class DuplicateParameter(Invalid):
    """A query parameter is repeated that may not be."""

    code = "placement.query.duplicate_key"


class BadParameter(Invalid):
    """A query parameter has an invalid value."""

    code = "placement.query.bad_value"


class MissingParameter(Invalid):
    """A required query parameter is missing."""

    code = "placement.query.missing_value"


class UnknownName(NotFound):
    """No such resource class or trait."""

    code = "micronova.unknown_name"


UNDEFINED_CODE = "placement.undefined_code"


def api_code(error: Exception) -> str:
    """Return the code of `error` as the Placement API knows it."""
    code = error.code if isinstance(error, MicronovaError) else ""
    return code if code.startswith("placement.") else UNDEFINED_CODE
