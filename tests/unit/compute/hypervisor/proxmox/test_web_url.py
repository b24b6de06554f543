"""Where administrators find a cluster's web interface."""

from __future__ import annotations

from pathlib import Path

import pytest
from oslo_config import cfg

from common.errors import ConfigurationError
from compute.hypervisor.proxmox import settings


def web_url(folder: Path, *lines: str) -> str:
    """Return the URL that a configuration gives."""
    token = folder / "token"
    token.write_text("micronova@pve!agent=secret", encoding="utf-8")
    token.chmod(0o600)
    file = folder / "micronova.conf"
    group = ["[proxmox:c1]", "endpoints = https://pve1:8006,https://pve2:8006"]
    text = ["[proxmox]", "clusters = c1", *group, f"token_file = {token}", *lines]
    file.write_text("\n".join(text), encoding="utf-8")
    conf = cfg.ConfigOpts()
    settings.register(conf)
    conf([], project="micronova", default_config_files=[str(file)])
    [found] = settings.clusters(conf)
    return found.web_url


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ((), "https://pve1:8006"),
        (("web_url = https://pve.example.org/",), "https://pve.example.org"),
        (("web_url = none",), ""),
        (("endpoints = https://[2001:db8::1]:8006",), "https://[2001:db8::1]:8006"),
    ],
)
def test_the_first_endpoint_unless_it_is_set(
    tmp_path: Path, lines: tuple[str, ...], wanted: str
) -> None:
    assert web_url(tmp_path, *lines) == wanted


@pytest.mark.parametrize(
    "given", ["javascript:alert(1)", "pve1", "https://root:secret@pve1", "https://", "file:///x"]
)
def test_a_url_without_a_user_and_nothing_else(tmp_path: Path, given: str) -> None:
    with pytest.raises(ConfigurationError, match="web_url"):
        web_url(tmp_path, f"web_url = {given}")
