"""The proxies' files of `etc/` before a cloud of a test, without TLS."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.process.child import ROOT
from tests.functional import haproxy, nginx


@dataclass(frozen=True)
class Behind:
    """Two public APIs and two of placement, by the ports of requests and those of operators."""

    folder: Path
    public: tuple[tuple[int, int], tuple[int, int]]
    placement: tuple[tuple[int, int], tuple[int, int]]

    def placed(self, text: str) -> str:
        """Return a proxy's file with these addresses."""
        kinds = (("8774", "18774", self.public), ("8778", "18778", self.placement))
        for printed, checked, machines in kinds:
            for host, (port, metrics) in zip(("10.0.0.10", "10.0.0.11"), machines, strict=True):
                assert f"{host}:{printed}" in text, text
                text = text.replace(f"{host}:{printed}", f"127.0.0.1:{port}")
                text = text.replace(
                    f":{port} check port {checked}", f":{port} check port {metrics}"
                )
        return text


States = haproxy.States
Proxy = Callable[[Behind, int], contextlib.AbstractContextManager[States | None]]
"""Runs before these, at a port; gives what it thinks of each server, if it says so."""


@contextlib.contextmanager
def behind_haproxy(behind: Behind, port: int) -> Iterator[States]:
    """Run HAProxy."""
    text = behind.placed((ROOT / "etc" / "haproxy" / "haproxy.cfg").read_text())
    printed = "bind :443 ssl crt /etc/haproxy/cloud.pem alpn h2,http/1.1"
    assert printed in text
    config = behind.folder / "haproxy.cfg"
    config.write_text(text.replace(printed, f"bind 127.0.0.1:{port}"))
    with haproxy.running(config, port) as states:
        yield states


@contextlib.contextmanager
def behind_nginx(behind: Behind, port: int) -> Iterator[None]:
    """Run nginx; skip where it isn't installed."""
    if nginx.NGINX is None:
        pytest.skip("nginx is not installed on this machine")
    text = behind.placed((ROOT / "etc" / "nginx" / "micronova.conf").read_text())
    assert "listen 443 ssl;" in text
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};")
    text = re.sub(r"\n *ssl_certificate.*", "", text)
    folder = behind.folder / "nginx"
    folder.mkdir()
    config, temporary = folder / "nginx.conf", nginx.temporary_paths(folder)
    config.write_text(f"pid {folder}/pid;\nevents {{}}\nhttp {{\n{temporary}{text}}}\n")
    with nginx.running(config, port):
        yield


PROXIES: Mapping[str, Proxy] = {"haproxy": behind_haproxy, "nginx": behind_nginx}
