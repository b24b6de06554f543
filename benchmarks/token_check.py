"""Measure the CPU time that the token check adds to a request, with a real Keystone behind it.

``python -m benchmarks.token_check``, JSON. Each request has the same token: it is looked up once
in some seconds (``web.auth.RECENT_SECONDS``), and in the cache of tokens without that.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from wsgiref.util import setup_testing_defaults

from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session
from oslo_config import cfg

from common.clients import credentials
from identity.clouds import service_credentials
from identity.keystone import Keystone
from identity.layout import catalog
from identity.passwords import load_passwords
from web import auth

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ok"]


def cpu_us(app: WSGIApplication, token: str, requests: int) -> float:
    """Return the CPU time of one request in microseconds, with a warm cache."""
    statuses: set[str] = set()

    def start_response(status: str, headers: list[tuple[str, str]], *_: Any) -> Any:
        statuses.add(status)

    def request() -> None:
        environ: dict[str, Any] = {"HTTP_X_AUTH_TOKEN": token}
        setup_testing_defaults(environ)
        list(app(environ, start_response))

    request()
    start = time.process_time()
    for _ in range(requests):
        request()
    assert statuses == {"200 OK"}, statuses
    return (time.process_time() - start) / requests * 1e6


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.token_check")
    parser.add_argument("--requests", type=int, default=3000)
    requests = parser.parse_args(arguments).requests
    with tempfile.TemporaryDirectory() as folder:
        state_dir = Path(folder)
        server = Keystone(state_dir, port=0)
        server.listen()
        try:
            passwords = load_passwords(state_dir)
            start = time.monotonic()
            server.prepare(
                catalog(server.auth_url, "http://127.0.0.1:8774"), passwords, lambda step: None
            )
            prepared = time.monotonic()
            server.start()
            server.wait_ready(60)
            up = time.monotonic()
            added = measure(service_credentials(server.auth_url, passwords), requests)
        finally:
            server.stop()
    keystone = {"prepared_s": round(prepared - start, 1), "up_s": round(up - prepared, 1)}
    json.dump(
        {"requests": requests, "keystone": keystone, "added_us": added}, sys.stdout, indent=2
    )
    sys.stdout.write("\n")
    return 0


def measure(login: dict[str, str], requests: int) -> dict[str, int]:
    """Return the CPU microseconds that the check adds to a request, by what is configured."""
    user: dict[str, Any] = {key: login[key] for key in login.keys() - {"auth_type", "region_name"}}
    token = str(Session(Password(**user)).get_token())
    bare = cpu_us(application, token, requests)
    found = {}
    for name, seconds, with_catalog in (
        ("as_configured_by_default", auth.RECENT_SECONDS, True),
        ("from_the_cache_of_tokens", 0.0, True),
        ("from_that_without_a_catalog", 0.0, False),
    ):
        conf = cfg.ConfigOpts()
        auth.register(conf)
        conf([], project="micronova", default_config_files=[])
        uri = {"www_authenticate_uri": login["auth_url"]}
        credentials.set_defaults(conf, auth.GROUP, login | uri)
        conf.set_override("include_service_catalog", with_catalog, group=auth.GROUP)
        found[name] = round(
            cpu_us(auth.protect(application, conf, recent_seconds=seconds), token, requests) - bare
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
