"""The embedded cloud for tests: `micronova up` as its own process, as a user starts it.

with embedded_cloud(tmp_path, driver=null.DRIVER) as cloud:
    cloud.connection().compute.servers()
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import openstack.config
import openstack.connection

from cli import leftovers
from common.process.child import ROOT, die_with_parent
from tests.fixtures import null
from tests.functional import simulator_control
from tests.functional.audits import Audits
from tests.functional.waiting import eventually

__all__ = ["EmbeddedCloud", "embedded_cloud", "eventually"]

#: what it prints once it serves
_UP = "Ctrl-C stops the cloud"
START_SECONDS = 400
STOP_SECONDS = 60


@dataclasses.dataclass
class EmbeddedCloud:
    """A running cloud; `output` is what it has printed."""

    process: subprocess.Popen[str]
    state_dir: Path
    output: list[str]

    @property
    def clouds_yaml(self) -> Path:
        """The file for OS_CLIENT_CONFIG_FILE."""
        return self.state_dir / "clouds.yaml"

    @property
    def auth_url(self) -> str:
        """The identity API."""
        return str(self.config("micronova").auth["auth_url"])

    @property
    def base_url(self) -> str:
        """What the APIs are below."""
        line = next(one for one in self.output if "compute API" in one)
        return line.split()[-1].removesuffix("/compute/v2.1")

    @property
    def simulator(self) -> Path:
        """The simulator's folder."""
        return self.state_dir / "simulator"

    def config(self, name: str) -> Any:
        """Return a cloud of clouds.yaml: micronova, -admin, -demo or -reader."""
        return openstack.config.OpenStackConfig(
            config_files=[str(self.clouds_yaml)], load_envvars=False
        ).get_one(name)

    def connection(self, name: str = "micronova-demo") -> Any:
        """Return an openstacksdk connection."""
        return openstack.connection.Connection(config=self.config(name))

    def environment(self, name: str = "micronova") -> dict[str, str]:
        """Return the environment of a client's shell."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("OS_")}
        return kept | {"OS_CLIENT_CONFIG_FILE": str(self.clouds_yaml), "OS_CLOUD": name}

    @property
    def simulator_url(self) -> str:
        """The API of the first simulated cluster."""
        return simulator_control.url_of(self.simulator)

    def held(self) -> dict[str, leftovers.Held]:
        """Return what the simulated clusters hold of servers."""
        return leftovers.held(self.simulator)

    def control(self, method: str, door: str, /, **body: Any) -> Any:
        """Ask the simulator's control API, e.g. ``control("POST", "faults", action=…)``."""
        return simulator_control.control(self.simulator, method, door, **body)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)


def command(state_dir: Path, **options: Any) -> list[str]:
    """Return the command line of `micronova up`; `nodes=4` is `--nodes 4`, True a bare flag, and
    a list has its option repeated."""
    words = [sys.executable, "-m", "micronova", "up", "--state-dir", str(state_dir)]
    for name, value in ({"port": 0} | options).items():
        for one in value if isinstance(value, list) else [value]:
            words += [f"--{name.replace('_', '-')}"]
            words += [] if one is True else [str(one)]
    return words


def run_to_end(state_dir: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `micronova up` with options that make it end by itself."""
    return subprocess.run(
        command(state_dir, **options),
        capture_output=True,
        text=True,
        timeout=START_SECONDS,
        check=False,
        env=_environment(**options),
        cwd=ROOT,
    )


@contextlib.contextmanager
def embedded_cloud(
    state_dir: Path, *, audited: bool = True, argv: Sequence[str] = (), **options: Any
) -> Iterator[EmbeddedCloud]:
    """Run the embedded cloud in `state_dir`, on free ports, until the block ends; `argv` is a
    command line that does so.

    If it still runs then, an audit must find nothing, and must never have had to heal anything;
    `audited` False: the caller says what an audit may find.
    """
    process = subprocess.Popen(
        argv or command(state_dir, **options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=_environment(**options),
        cwd=ROOT,
        # Signals of the terminal are for the tests.
        start_new_session=True,
        preexec_fn=die_with_parent,  # noqa: PLW1509
    )
    cloud = EmbeddedCloud(process, state_dir, [])
    up = threading.Event()
    reader = threading.Thread(target=_read, args=(cloud, up), daemon=True)
    reader.start()
    try:
        assert up.wait(START_SECONDS), f"not up: {''.join(cloud.output)}"
        # what it prints ends a moment before the process does
        is_up = any(line.startswith(_UP) for line in cloud.output)
        assert is_up and process.poll() is None, (
            f"ended: {''.join(cloud.output)}{_logs(state_dir)}"
        )
        yield cloud
        if audited and process.poll() is None:
            Audits(cloud).assert_clean(unaided=True)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        reader.join()
        assert process.stdout is not None
        process.stdout.close()


def _read(cloud: EmbeddedCloud, up: threading.Event) -> None:
    assert cloud.process.stdout is not None
    for line in cloud.process.stdout:
        cloud.output.append(line)
        if line.startswith(_UP):
            up.set()
    up.set()


def _logs(state_dir: Path) -> str:
    tails = []
    for path in sorted((state_dir / "log").glob("*.log")):
        tails.append(f"\n--- {path.name}\n{path.read_text(errors='replace')[-3000:]}")
    return "".join(tails)


#: nobody listens there: what is sent to a proxy of the environment fails
_NO_PROXY = "http://127.0.0.1:9"


def _environment(*, nodes: int = 3, clusters: int = 1, **_options: Any) -> Mapping[str, str]:
    """Return the environment; hosts without a hypervisor are as many as simulated ones."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("OS_")}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _NO_PROXY)
    hosts = {null.HOSTS: str(int(nodes) * int(clusters))}
    return ours | hosts | proxies | {"no_proxy": "", "NO_PROXY": ""}
