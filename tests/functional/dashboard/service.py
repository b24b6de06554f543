"""The dashboard as a service of its own beside an embedded cloud, as a deployment runs it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import requests

from common.child import ROOT, Child
from launcher.embedded.settings import render
from tests.functional import backends
from tests.functional.cloud import EmbeddedCloud, eventually

_START_SECONDS = 60


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
        return requests.get(f"{url}/login", timeout=5).ok
    return False
