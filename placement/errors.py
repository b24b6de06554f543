"""What placement adds to the tree of errors, and the one table from errors to HTTP statuses.

The codes below are those of the OpenStack Placement API, which its clients know; every other
error is told as `placement.undefined_code` there.
"""

from __future__ import annotations

from collections.abc import Mapping

from common.errors import (
    Conflict,
    Forbidden,
    GenerationConflict,
    Invalid,
    MicronovaError,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)


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
    """An allocation asks for more, or for other units, than the inventory gives."""

    code = "micronova.inventory_refused"


class ProviderUnknown(Invalid):
    """A request names a provider that doesn't exist."""

    code = "placement.resource_provider.not_found"


class DuplicateParameter(Invalid):
    """A query parameter that may be given once is given more often."""

    code = "placement.query.duplicate_key"


class BadParameter(Invalid):
    """A query parameter has a value that can't be."""

    code = "placement.query.bad_value"


class MissingParameter(Invalid):
    """A query parameter that is needed is not there."""

    code = "placement.query.missing_value"


class UnknownName(NotFound):
    """No such resource class or trait."""

    code = "micronova.unknown_name"


class NotAcceptable(Invalid):
    """The client accepts nothing that the service can answer with."""

    code = "micronova.not_acceptable"


class MethodNotAllowed(Invalid):
    """The path exists, but not with this method."""

    code = "micronova.method_not_allowed"


class UnsupportedMedia(Invalid):
    """The body is of another type than the service takes."""

    code = "micronova.unsupported_media"


STATUSES: Mapping[type[MicronovaError], int] = {
    Invalid: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    MethodNotAllowed: 405,
    NotAcceptable: 406,
    Conflict: 409,
    TooLarge: 413,
    UnsupportedMedia: 415,
    Unavailable: 503,
}
"""Error class → HTTP status; the nearest class of an error's ancestry counts, none is a 500."""

UNDEFINED_CODE = "placement.undefined_code"


def status_of(error: MicronovaError) -> int:
    """Return the HTTP status that tells `error`."""
    for ancestor in type(error).__mro__:
        if ancestor in STATUSES:
            return STATUSES[ancestor]
    return 500


def api_code(error: MicronovaError) -> str:
    """Return the code of `error` as the Placement API knows it."""
    return error.code if error.code.startswith("placement.") else UNDEFINED_CODE
