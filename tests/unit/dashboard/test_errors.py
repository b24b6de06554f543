from __future__ import annotations

import pytest

from common.errors import Invalid, MicronovaError
from dashboard.errors import ApiRefused, status_of


@pytest.mark.parametrize(
    ("refused", "status"),
    [
        (None, 200),
        (Invalid("x"), 400),
        (ApiRefused("x", status=403), 403),
        (ApiRefused("x", status=500), 502),
    ],
)
def test_an_api_that_fails_is_no_failure_of_the_page(
    refused: MicronovaError | None, status: int
) -> None:
    assert status_of(refused) == status
