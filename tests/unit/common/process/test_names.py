"""Names of processes that last, and that two of one machine never share."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid

import pytest
from oslo_config import cfg

from common.errors import ConfigurationError
from common.process import names


def a_conf(bus: str, name: str | None = None) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt("transport_url", default=bus)])
    conf.register_opts([cfg.StrOpt("name", default=name)], group="conductor")
    conf([])
    return conf


def test_a_process_has_its_machine_s_name_and_further_ones_a_number() -> None:
    conf, host = a_conf(f"rabbit://{uuid.uuid4()}"), socket.gethostname()
    held = [names.of(conf, "conductor") for _ in range(3)]
    assert held == [host, f"{host}-2", f"{host}-3"]
    names.release(conf, "conductor", f"{host}-2")
    assert names.of(conf, "conductor") == f"{host}-2", "that of the one before it"
    for name in held:
        names.release(conf, "conductor", name)


def test_clouds_and_kinds_are_apart() -> None:
    host = socket.gethostname()
    for _ in range(2):
        conf = a_conf(f"rabbit://{uuid.uuid4()}")
        assert names.of(conf, "conductor") == host
        names.release(conf, "conductor", host)


def test_a_configured_name_is_held_by_one_process() -> None:
    conf = a_conf(f"rabbit://{uuid.uuid4()}", "left")
    assert names.of(conf, "conductor") == "left"
    with pytest.raises(ConfigurationError, match="has the name left"):
        names.of(conf, "conductor")
    names.release(conf, "conductor", "left")
    assert names.of(conf, "conductor") == "left"
    names.release(conf, "conductor", "left")


def test_a_name_is_free_once_its_process_has_ended() -> None:
    """However it ended."""
    bus, host = f"rabbit://{uuid.uuid4()}", socket.gethostname()
    hold = (
        "import os, sys; from common.process import names;"
        "print(names.hold('conductor', sys.argv[1], None), flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", hold, bus], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == host, done.stderr
    conf = a_conf(bus)
    assert names.of(conf, "conductor") == host
    names.release(conf, "conductor", host)


def test_a_bus_within_one_process_has_one_of_each() -> None:
    conf = a_conf("micronova-local://x")
    assert names.of(conf, "conductor") == names.of(conf, "conductor") == socket.gethostname()
