from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from common.process import child
from identity import keystone
from identity.errors import KeystoneFailed
from identity.prepare import configuration_environment


@pytest.mark.parametrize(
    ("host", "advertised", "url"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:5000/v3"),
        ("0.0.0.0", "cloud.example", "http://cloud.example:5000/v3"),
        ("::1", None, "http://[::1]:5000/v3"),
    ],
)
def test_auth_url(host: str, advertised: str | None, url: str) -> None:
    server = keystone.Keystone(Path("/nowhere"), host, advertised_host=advertised)
    assert server.auth_url == url


def test_options_have_ranges_and_help() -> None:
    conf = cfg.ConfigOpts()
    keystone.register(conf)
    conf([], default_config_files=[])
    assert conf[keystone.GROUP].threads == 8
    assert conf[keystone.GROUP].login_failures == 50
    assert all(option.help for option in keystone.OPTIONS)


def test_waiting_before_the_start_is_an_error() -> None:
    with pytest.raises(KeystoneFailed, match="not started"):
        keystone.Keystone(Path("/nowhere")).wait_ready(1)


def test_the_callers_settings_stay_out_of_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_PASSWORD", "callers")
    monkeypatch.setenv("GUNICORN_CMD_ARGS", "--workers 9")
    environment = child.environment(configuration_environment(Path("/state/keystone")))
    assert "OS_PASSWORD" not in environment
    assert "GUNICORN_CMD_ARGS" not in environment
    assert environment["OS_KEYSTONE_CONFIG_DIR"] == "/state/keystone"
    assert (Path(environment["PYTHONPATH"]) / "identity" / "wsgi.py").exists()
