"""Errors, their codes and their HTTP statuses; and that the tables are whole."""

from __future__ import annotations

import pytest

from common import errors as common_errors
from common.errors import MicronovaError
from placement import errors
from placement.policies import _OTHERS
from placement.routes import ROUTES, list_rules, operations
from web import errors as web_errors
from web.protected import served_by

#: what clients know: once set, they are set
CODES = {
    errors.ConcurrentUpdate: ("placement.concurrent_update", 409),
    errors.InventoryInUse: ("placement.inventory.inuse", 409),
    errors.DuplicateName: ("placement.duplicate_name", 409),
    errors.ProviderInUse: ("placement.resource_provider.inuse", 409),
    errors.ProviderHasChildren: ("placement.resource_provider.cannot_delete_parent", 409),
    errors.ProviderUnknown: ("placement.resource_provider.not_found", 400),
    errors.DuplicateParameter: ("placement.query.duplicate_key", 400),
    errors.BadParameter: ("placement.query.bad_value", 400),
    errors.MissingParameter: ("placement.query.missing_value", 400),
    errors.InventoryRefused: ("placement.undefined_code", 409),
    errors.UnknownName: ("placement.undefined_code", 404),
    web_errors.NotAcceptable: ("placement.undefined_code", 406),
    web_errors.MethodNotAllowed: ("placement.undefined_code", 405),
    web_errors.UnsupportedMedia: ("placement.undefined_code", 415),
    common_errors.Unavailable: ("placement.undefined_code", 503),
    common_errors.TooLarge: ("placement.undefined_code", 413),
    common_errors.Forbidden: ("placement.undefined_code", 403),
    common_errors.MicronovaError: ("placement.undefined_code", 500),
}


@pytest.mark.parametrize(("kind", "expected"), CODES.items(), ids=str)
def test_codes_and_statuses(kind: type[MicronovaError], expected: tuple[str, int]) -> None:
    error = kind("text")
    assert (errors.api_code(error), web_errors.status_of(error)) == expected


def test_every_own_error_is_in_the_list() -> None:
    own = {
        one
        for one in vars(errors).values()
        if isinstance(one, type)
        and issubclass(one, MicronovaError)
        and one.__module__ == errors.__name__
    }
    assert own <= CODES.keys()


def test_every_operation_but_the_version_document_has_a_rule() -> None:
    open_to_all = [path for _, path, one in served_by(ROUTES.items()) if not one.rules]
    assert open_to_all == ["/"]
    assert _OTHERS.keys() <= operations().keys()


def test_rules_keep_their_names() -> None:
    names = {rule.name for rule in list_rules()}
    assert {"placement:allocations:update", "placement:reshaper:reshape"} <= names
    assert len(names) == 44
