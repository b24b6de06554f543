"""An unmodified Skyline beside a cloud: its API server, its console, and nginx before both."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import requests

from tests.compat.horizon.horizon import run_install
from tests.fixtures import dashboards
from tests.fixtures.dashboards import Printed
from tests.functional import backends, nginx
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.pages import block, placed

#: the program `python` of the environment that has Skyline
PYTHON = Path(os.environ.get("MICRONOVA_TEST_SKYLINE") or "/nonexistent")
MISSING = [
    *([] if PYTHON.exists() else ["skyline-apiserver and skyline-console"]),
    *([] if nginx.NGINX else ["nginx"]),
    *(one for one in ("chromium", "chromedriver") if shutil.which(one) is None),
]
"""What these tests need and this machine hasn't."""

_START_SECONDS = 60
#: what Debian's nginx-common would know
_TYPES = "types { text/html html; text/css css; application/javascript js; image/svg+xml svg; }"


@contextlib.contextmanager
def running_skyline(cloud: EmbeddedCloud, folder: Path) -> Iterator[str]:
    """Run Skyline until the block ends, as docs/existing-dashboards.md says; gives its address."""
    port = backends.free_port()
    places = _places(cloud, folder, port)
    run_install(block(*dashboards.SKYLINE_INSTALL), places)
    settings = _printed(dashboards.SKYLINE_SETTINGS, places)
    (folder / "etc" / "skyline" / "skyline.yaml").write_text(settings)
    head, _, server = _printed(dashboards.SKYLINE_START, places).rstrip().rpartition("\n")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        # the default is /etc/skyline
        "OS_CONFIG_DIR": str(folder / "etc" / "skyline"),
    }
    done = subprocess.run(
        ["bash", "-ec", head], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    config = folder / "nginx.conf"
    _adapt(config, folder, block(*dashboards.SKYLINE_DOMAINS))
    url = f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as running, (folder / "output.log").open("w") as log:
        process = subprocess.Popen(
            ["bash", "-ec", f"exec {server}"],
            env=environment,
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        running.callback(process.wait, 30)
        running.callback(process.terminate)
        running.enter_context(nginx.running(config, port))
        eventually(lambda: _answers(f"{url}/api/openstack/skyline/api/v1/config"), _START_SECONDS)
        yield url


def _places(cloud: EmbeddedCloud, folder: Path, port: int) -> dict[str, str]:
    """What is printed → what this machine has."""
    admin = cloud.config("micronova-admin").auth
    return {
        "/opt/skyline": str(PYTHON.parent.parent),
        "/etc/skyline": f"{folder}/etc/skyline",
        "/var/lib/skyline": f"{folder}/lib",
        "/var/log/skyline": f"{folder}/log",
        "/etc/nginx/nginx.conf": f"{folder}/nginx.conf --listen-address 127.0.0.1:{port}",
        "<a secret>": "s" * 43,
        "http://127.0.0.1:8775/v3": cloud.auth_url,
        "system_user_name: admin ": f"system_user_name: {admin['username']} ",
        "<its password>": admin["password"],
        "system_project: admin": f"system_project: {admin['project_name']}",
    }


def _printed(which: Printed, places: Mapping[str, str]) -> str:
    """Return what the page prints, in other places."""
    text = placed(block(*which), places)
    assert "<" not in text, text
    return text


def _adapt(path: Path, folder: Path, domains: str) -> None:
    """Have nginx run in a folder, without Debian's configuration; add what has to be added."""
    text = path.read_text()
    for old, new in (
        ("pid /run/nginx.pid;", f"pid {folder}/nginx.pid;"),
        ("worker_processes auto;", "worker_processes 1;"),
        ("include /etc/nginx/modules-enabled/*.conf;", ""),
        ("include /etc/nginx/mime.types;", _TYPES),
        ("/var/lib/skyline/skyline.sock", f"{folder}/lib/skyline.sock"),
        ("http {", "http {\n" + nginx.temporary_paths(folder)),
        ("location / {", f"{domains}\nlocation / {{"),
    ):
        assert old in text, old
        text = text.replace(old, new, 1)
    path.write_text(text)


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=30).status_code < 500
    except requests.ConnectionError:
        return False
