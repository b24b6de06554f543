"""The configuration as text holds no secret."""

from __future__ import annotations

import pytest
from oslo_config import cfg

from launcher import listing


@pytest.fixture
def conf() -> cfg.ConfigOpts:
    made = cfg.ConfigOpts()
    made.register_opts(
        [
            cfg.StrOpt("transport_url", secret=True, default="rabbit://u:pw1@h1:1,u:pw2@h2:2/v"),
            cfg.StrOpt("plain", default="x"),
        ]
    )
    made.register_opts(
        [cfg.StrOpt("password"), cfg.StrOpt("connection", secret=True), cfg.IntOpt("size")],
        group="database",
    )
    made([])
    return made


def test_only_what_is_set_is_shown(conf: cfg.ConfigOpts) -> None:
    conf.set_override("size", 3, group="database")
    assert list(listing.lines(conf, defaults=False)) == ["[database]", "size = 3"]


def test_secrets_are_masked(conf: cfg.ConfigOpts) -> None:
    conf.set_override("password", "pw3", group="database")
    conf.set_override("connection", "postgresql+psycopg://me:pw4@db/x", group="database")
    text = "\n".join(listing.lines(conf, defaults=True))
    assert "pw" not in text.replace("password", "")
    assert "connection = postgresql+psycopg://me:***@db/x" in text
    assert "password = ***" in text
    assert "transport_url = rabbit://u:***@h1:1,u:***@h2:2/v" in text
    assert "plain = x" in text


def test_a_switch_is_no_secret(conf: cfg.ConfigOpts) -> None:
    switch = cfg.BoolOpt("enable_instance_password", default=True)
    conf.register_opts([switch, cfg.IntOpt("password_length", default=12)], group="api")
    shown = list(listing.lines(conf, defaults=True))
    assert {"enable_instance_password = True", "password_length = 12"} <= set(shown)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:////state/cloud.sqlite", "sqlite:////state/cloud.sqlite"),
        ("https://host:8006", "https://host:8006"),
        ("rabbit://me:p%40ss@host/", "rabbit://me:***@host/"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
    ],
)
def test_passwords_leave_urls(url: str, shown: str) -> None:
    assert listing.without_password(url) == shown
