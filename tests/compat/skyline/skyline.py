"""An unmodified Skyline beside a cloud: its API server, its console, and nginx before both."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import requests

from tests.functional import backends
from tests.functional.cloud import EmbeddedCloud, eventually
from tests.pages import block

#: the program `python` of the environment that has Skyline
PYTHON = Path(os.environ.get("MICRONOVA_TEST_SKYLINE") or "/nonexistent")
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
MISSING = [
    *([] if PYTHON.exists() else ["skyline-apiserver and skyline-console"]),
    *([] if NGINX else ["nginx"]),
    *(one for one in ("chromium", "chromedriver") if shutil.which(one) is None),
]
"""What these tests need and this machine hasn't."""

_START_SECONDS = 60
#: the list of domains, which the log-in page asks for and Skyline's API gives to nobody before it
_DOMAINS = block("docs/existing-dashboards.md", "nginx", "contrib/domains")
#: one process, of the user whose folder it is
_ALONE = "daemon off; master_process off;"
#: what Debian's nginx-common would know
_TYPES = "types { text/html html; text/css css; application/javascript js; image/svg+xml svg; }"


@contextlib.contextmanager
def running_skyline(cloud: EmbeddedCloud, folder: Path) -> Iterator[str]:
    """Run Skyline until the block ends, as docs/existing-dashboards.md says; gives its address."""
    _configure(cloud, folder)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OS_CONFIG_DIR": str(folder)}
    port = backends.free_port()
    bin_, socket = PYTHON.parent, folder / "skyline.sock"
    for words in (
        ("alembic", "-c", str(_database_scripts()), "upgrade", "head"),
        ("skyline-nginx-generator", "-o", "nginx.conf", "--listen-address", f"127.0.0.1:{port}"),
    ):
        subprocess.run(
            [str(bin_ / words[0]), *words[1:]],
            env=environment,
            cwd=folder,
            check=True,
            capture_output=True,
        )
    _adapt(folder / "nginx.conf", folder, socket)
    server = [str(bin_ / "gunicorn"), "-k", "uvicorn.workers.UvicornWorker"]
    server += ["-b", f"unix:{socket}", "--no-control-socket", "skyline_apiserver.main:app"]
    proxy = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-g", _ALONE]
    url = f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as running, (folder / "output.log").open("w") as log:
        for command in (server, proxy):
            process = subprocess.Popen(
                command, env=environment, cwd=folder, stdout=log, stderr=subprocess.STDOUT
            )
            running.callback(process.wait, 30)
            running.callback(process.terminate)
        eventually(lambda: _answers(f"{url}/api/openstack/skyline/api/v1/config"), _START_SECONDS)
        yield url


def _configure(cloud: EmbeddedCloud, folder: Path) -> None:
    admin = cloud.config("micronova-admin").auth
    text = block("docs/existing-dashboards.md", "yaml", "keystone_url")
    for old, new in (
        ("/var/lib/skyline", str(folder)),
        ("/var/log/skyline", str(folder)),
        ("<a secret>", "s" * 43),
        ("http://127.0.0.1:8775/v3", cloud.auth_url),
        ("system_user_name: admin ", f"system_user_name: {admin['username']} "),
        ("<its password>", admin["password"]),
        ("system_project: admin", f"system_project: {admin['project_name']}"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    (folder / "skyline.yaml").write_text(text)


def _database_scripts() -> Path:
    where = "import skyline_apiserver.db as db; print(list(db.__path__)[0])"
    done = subprocess.run([str(PYTHON), "-c", where], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip()) / "alembic" / "alembic.ini"


def _adapt(path: Path, folder: Path, socket: Path) -> None:
    """Have nginx run in a folder, without Debian's configuration; add what has to be added."""
    text = path.read_text()
    for old, new in (
        ("pid /run/nginx.pid;", f"pid {folder}/nginx.pid;"),
        ("worker_processes auto;", "worker_processes 1;"),
        ("include /etc/nginx/modules-enabled/*.conf;", ""),
        ("include /etc/nginx/mime.types;", _TYPES),
        ("/var/lib/skyline/skyline.sock", str(socket)),
        ("http {", "http {\n" + _places(folder)),
        ("location / {", f"{_DOMAINS}\nlocation / {{"),
    ):
        assert old in text, old
        text = text.replace(old, new, 1)
    path.write_text(text)


def _places(folder: Path) -> str:
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    return "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=30).status_code < 500
    except requests.ConnectionError:
        return False
