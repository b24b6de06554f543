"""One Keystone for all tests of this folder."""

from __future__ import annotations

import pytest

from tests.functional.keystone_fixture import RunningKeystone, running_keystone
from tests.shared import Shared

_KEYSTONE: Shared[RunningKeystone] = Shared("keystone")


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> RunningKeystone:
    """A running Keystone as `micronova up` prepares it."""
    return _KEYSTONE.get(lambda: running_keystone(tmp_path_factory.mktemp("identity")))
