"""One Keystone for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.functional.keystone_fixture import RunningKeystone, running_keystone


@pytest.fixture(scope="session")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKeystone]:
    """A running Keystone as `micronova up` prepares it."""
    with running_keystone(tmp_path_factory.mktemp("identity")) as running:
        yield running
