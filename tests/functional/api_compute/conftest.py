"""The compute API in process, over SQLite, with a conductor that writes rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.compute import ComputeApi, a_compute_api
from tests.fixtures.listings import Row

MakeApi = Callable[..., ComputeApi]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeApi]:
    """Make an API with these rows; its database ends with the test."""
    made: list[ComputeApi] = []

    def an_api(*rows: Row, **options: Any) -> ComputeApi:
        api = a_compute_api(tmp_path, *rows, **options)
        made.append(api)
        return api

    yield an_api
    for api in made:
        api.close()


@pytest.fixture
def api(make: MakeApi) -> ComputeApi:
    """An API with nothing but the standard rows."""
    return make()
