"""Which driver a worker's agents have."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from common import config
from common.errors import ConfigurationError
from compute import config as options
from compute import drivers
from tests.fixtures import null
from tests.fixtures.null.driver import NullHypervisor


def configuration(folder: Path, driver: str) -> cfg.ConfigOpts:
    file = folder / "micronova.conf"
    file.write_text(f"[compute]\ndriver = {driver}\n")
    return config.load([options.register], files=[str(file)])


def test_another_driver_is_found_by_its_name(tmp_path: Path) -> None:
    [found] = drivers.hypervisors(configuration(tmp_path, null.DRIVER))
    assert isinstance(found, NullHypervisor)
    assert len(found.observe().hosts) == null.hosts()


@pytest.mark.parametrize("name", ["nowhere:hypervisors", "tests.fixtures.null.driver:nothing"])
def test_a_driver_that_can_not_be_loaded_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=name):
        drivers.hypervisors(configuration(tmp_path, name))


@pytest.mark.parametrize("name", ["null", "xen", "a:b:c", "proxmoxx", ""])
def test_what_names_no_driver_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="driver"):
        configuration(tmp_path, name)
