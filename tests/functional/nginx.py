"""nginx for tests: in a folder, as one process of the user who runs them."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.functional import backends
from tests.functional.waiting import eventually

NGINX = backends.program("nginx", "/usr/sbin/nginx")
"""None: it isn't installed."""

_ALONE = "daemon off; master_process off;"


def temporary_paths(folder: Path) -> str:
    """Return the directives of `http` that have it write nowhere but in a folder."""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "".join(f"{kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    return f"{paths}access_log {folder}/access.log;\n"


@contextlib.contextmanager
def running(config: Path, port: int, host: str = "127.0.0.1") -> Iterator[None]:
    """Run it with a configuration file until the block ends; `port` of
    `host` is one where it listens."""
    folder = config.parent
    command = [str(NGINX), "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")]
    with (folder / "nginx.log").open("w") as log:
        process = subprocess.Popen(
            [*command, "-g", _ALONE], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
    try:
        eventually(lambda: process.poll() is not None or backends.listens(port, host), 30)
        assert process.poll() is None, (folder / "nginx.log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(30)
