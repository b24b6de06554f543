"""The doctor connects to each host of the bus as the services do."""

from __future__ import annotations

import ssl

import pytest
from oslo_config import cfg

from common import rpc
from launcher.doctor import bus


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    made = cfg.ConfigOpts()
    rpc.register(made)
    made([], default_config_files=[])
    return made


def test_each_host_has_its_own_login(conf: cfg.ConfigOpts) -> None:
    conf.set_override("transport_url", "rabbit://a:p%40ss@mq1:5673,b:q@mq2,c:r@[::1]:5674/cloud")
    asked = [
        {name: host[name] for name in ("hostname", "port", "userid", "password", "ssl")}
        for host in bus.arguments(conf)
    ]
    assert [tuple(one.values()) for one in asked] == [
        ("mq1", 5673, "a", "p@ss", False),
        ("mq2", 5672, "b", "q", False),
        ("::1", 5674, "c", "r", False),
    ]
    assert {one["virtual_host"] for one in bus.arguments(conf)} == {"cloud"}


def test_an_url_without_a_login_or_virtual_host(conf: cfg.ConfigOpts) -> None:
    conf.set_override("transport_url", "rabbit://mq/")
    [asked] = bus.arguments(conf)
    assert (asked["userid"], asked["password"], asked["virtual_host"]) == ("guest", "guest", "/")


#: verified by the authorities that the system trusts
SYSTEM = {
    "ca_certs": "/etc/ssl/certs/ca-certificates.crt",
    "cert_reqs": ssl.CERT_REQUIRED,
    "server_hostname": "mq",
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, SYSTEM),
        ({"ssl_version": "TLSv1_2"}, SYSTEM | {"ssl_version": ssl.PROTOCOL_TLSv1_2}),
        (
            {"ssl_ca_file": "/ca", "ssl_key_file": "/key", "ssl_cert_file": "/cert"},
            {
                "keyfile": "/key",
                "certfile": "/cert",
                "ca_certs": "/ca",
                "cert_reqs": ssl.CERT_REQUIRED,
                "server_hostname": "mq",
            },
        ),
    ],
)
def test_tls(conf: cfg.ConfigOpts, options: dict[str, str], expected: object) -> None:
    conf.set_override("transport_url", "rabbit://u:p@mq/")
    for name, value in {"ssl": True, **options}.items():
        conf.set_override(name, value, group="oslo_messaging_rabbit")
    assert bus.arguments(conf)[0]["ssl"] == expected


@pytest.mark.parametrize("url", ["rabbit://u:pass/word@mq:5672/", "rabbit://u:p@mq:word/"])
def test_what_cannot_be_read_shows_no_password(conf: cfg.ConfigOpts, url: str) -> None:
    conf.set_override("transport_url", url)
    [found] = bus.bus(conf)
    assert found.code == "bus_unreachable"
    assert "word" not in found.what.replace("password", "")
