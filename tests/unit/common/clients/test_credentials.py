"""The services' own credentials."""

from __future__ import annotations

from typing import Any

import pytest
from oslo_config import cfg
from requests.adapters import HTTPAdapter

from common.clients import credentials
from common.errors import ConfigurationError

GROUP = "placement"
CREDENTIALS = {
    "auth_type": "password",
    "auth_url": "http://keystone.test/v3",
    "username": "micronova",
    "password": "hidden",
    "project_name": "service",
    "user_domain_name": "Default",
    "project_domain_name": "Default",
}


def a_conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    credentials.register(conf, GROUP)
    conf([], project="micronova", default_config_files=[])
    return conf


def test_a_configuration_file_wins_over_defaults(tmp_path: Any) -> None:
    path = tmp_path / "micronova.conf"
    path.write_text("[placement]\nusername = operator\n")
    conf = cfg.ConfigOpts()
    credentials.register(conf, GROUP)
    conf([], project="micronova", default_config_files=[str(path)])
    credentials.set_defaults(conf, GROUP, CREDENTIALS)
    assert conf[GROUP].username == "operator"
    assert conf[GROUP].project_name == "service"


def test_a_session_keeps_a_connection_for_each_thread() -> None:
    conf = a_conf()
    credentials.set_defaults(conf, GROUP, CREDENTIALS)
    session = credentials.session(conf, GROUP)
    mounted = session.session.get_adapter("http://keystone.test")
    assert isinstance(mounted, HTTPAdapter)
    pool = mounted.poolmanager
    assert pool.connection_pool_kw["maxsize"] == credentials.CONNECTIONS
    assert session.verify is True


def test_an_adapter_is_what_its_group_says() -> None:
    conf = a_conf()
    credentials.set_defaults(conf, GROUP, CREDENTIALS)
    conf.set_override("service_type", "placement", group=GROUP)
    conf.set_override("endpoint_override", "http://placement.test", group=GROUP)
    client = credentials.adapter(conf, GROUP)
    assert client.get_endpoint() == "http://placement.test"
    assert client.service_type == "placement"


def test_a_group_without_a_login_is_refused_at_once() -> None:
    conf = a_conf()
    with pytest.raises(ConfigurationError, match=r"^\[placement\] .* auth_type is not set"):
        credentials.session(conf, GROUP)
    conf.set_override("auth_type", "password", group=GROUP)
    with pytest.raises(ConfigurationError, match=r"auth.url"):
        credentials.session(conf, GROUP)
