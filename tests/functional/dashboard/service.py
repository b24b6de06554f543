"""The dashboard as a service of its own: beside an embedded cloud, or alone in this process."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlencode

import falcon.testing
import requests
from oslo_config import cfg

from common.process.child import ROOT, Child
from dashboard import config
from launcher.embedded.settings import render
from tests.functional import backends
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.dashboard.browser import Parsed
from web import proxies

_START_SECONDS = 240
#: what a proxy that does TLS says
TLS = {
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "cloud.example.org",
    "X-Forwarded-Prefix": "/dashboard",
}


def behind_proxy(folder: Path, auth_url: str) -> cfg.ConfigOpts:
    """Return the configuration of a dashboard behind a proxy on this machine."""
    conf = cfg.ConfigOpts()
    config.register(conf)
    proxies.register(conf)
    conf([], project="micronova", default_config_files=[])
    conf.set_override("auth_url", auth_url, config.GROUP)
    conf.set_override("state_dir", str(folder / "state"), config.GROUP)
    conf.set_override("trusted_proxies", ["127.0.0.1"], proxies.GROUP)
    return conf


def log_in(
    client: falcon.testing.TestClient, address: str = "192.0.2.1", **fields: str
) -> falcon.testing.Result:
    """Log in by the form of a dashboard behind a proxy, from an address."""
    answer = client.simulate_get("/login", headers=TLS, remote_addr="127.0.0.1")
    [form] = Parsed(answer.text).forms
    assert form.action == "/dashboard/login"
    mark = answer.cookies["__Host-micronova-login"].value
    cookie = f"__Host-micronova-login={mark}"
    return post(client, "/login", cookie, {**form.fields, **fields}, address)


def post(
    client: falcon.testing.TestClient,
    path: str,
    cookie: str,
    fields: Mapping[str, str],
    address: str = "192.0.2.1",
) -> falcon.testing.Result:
    """Send a form to a dashboard behind a proxy."""
    return client.simulate_post(
        path,
        remote_addr="127.0.0.1",
        headers={
            **TLS,
            "X-Forwarded-For": address,
            "Cookie": cookie,
            "Origin": "https://cloud.example.org",
            "Content-Type": "application/x-www-form-urlencoded",
        },
        body=urlencode(fields),
    )


@contextlib.contextmanager
def served(cloud: EmbeddedCloud, folder: Path, workers: int) -> Iterator[tuple[Child, str]]:
    """Serve the dashboard as a deployment does; return the process and the address."""
    port = backends.free_port()
    own = folder / "dashboard.conf"
    sections = {"dashboard": {"auth_url": cloud.auth_url, "state_dir": str(folder / "state")}}
    sections["metrics"] = {"port": str(backends.free_port())}
    own.write_text(render(sections), encoding="utf-8")
    child = Child(
        "dashboard",
        [
            *(sys.executable, "-m", "gunicorn", "micronova.wsgi:dashboard"),
            *("--config", str(ROOT / "etc" / "gunicorn.conf.py")),
            *("--bind", f"127.0.0.1:{port}", "--workers", str(workers)),
        ],
        folder / "dashboard.log",
        extra_environment={"MICRONOVA_CONFIG": str(own)},
    )
    child.start()
    try:
        url = f"http://127.0.0.1:{port}/dashboard"
        eventually(lambda: _answers(url), _START_SECONDS)
        yield child, url
    finally:
        child.stop()


def _answers(url: str) -> bool:
    with contextlib.suppress(requests.RequestException):
        return requests.get(f"{url}/login", timeout=60).ok
    return False
