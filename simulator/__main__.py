"""`python -m simulator`: run simulated clusters until a signal."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import orjson

from simulator.server import Options, Simulator, WrongStateError
from simulator.versions import VERSIONS

LOG = logging.getLogger("simulator")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    found = argparse.ArgumentParser(prog="simulator", description="Proxmox VE clusters, simulated")
    found.add_argument("--clusters", type=int, default=1, help="number of clusters")
    found.add_argument("--nodes", type=int, default=3, help="nodes in each cluster")
    found.add_argument("--bridges", type=int, default=2, help="bridges of each node")
    found.add_argument("--host", default="127.0.0.1", help="address to listen on")
    found.add_argument(
        "--port",
        type=int,
        default=8006,
        help="port of the first cluster, the others follow; 0 picks free ports",
    )
    found.add_argument("--state-dir", type=Path, required=True, help="directory of the state")
    found.add_argument("--speed", type=float, default=1.0, help="simulated seconds per second")
    found.add_argument("--pve-version", choices=sorted(VERSIONS), default="9.2")
    found.add_argument("--tls", action="store_true", help="HTTPS; clients trust ca.pem")
    found.add_argument(
        "--node-endpoints", action="store_true", help="one more port for every node"
    )
    found.add_argument(
        "--firewall", action="store_true", help="new clusters have the datacenter's firewall on"
    )
    found.add_argument(
        "--optional-privileges",
        action="store_true",
        help="give the agent also what its token may lack",
    )
    found.add_argument(
        "--unprepared",
        action="store_true",
        help="new clusters are as Proxmox VE's installer leaves them: root@pam alone, storages "
        "local and local-lvm, no image",
    )
    found.add_argument("--token-file", type=Path, help="file to write the agent's token to")
    found.add_argument(
        "--finish-seconds",
        type=float,
        default=0.0,
        help="real seconds to finish running tasks at SIGTERM, at full speed; 0 kills them",
    )
    found.add_argument(
        "--ready-fd",
        type=int,
        help="descriptor that gets one line of JSON with the ports once all are open",
    )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT."""
    given = parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _signal, _frame: stopping.set())
    ready_fd = vars(given).pop("ready_fd")
    finish_seconds = vars(given).pop("finish_seconds")
    try:
        simulator = Simulator(Options(**vars(given)))
    except WrongStateError as error:
        LOG.error("%s", error)
        return 2
    with simulator as running:
        if ready_fd is not None:
            message = {"ready": True, "endpoints": running.endpoints}
            os.write(ready_fd, orjson.dumps(message) + b"\n")
            os.close(ready_fd)
        stopping.wait()
        if finish_seconds and not running.finish(finish_seconds):
            LOG.warning("tasks still ran after %g s; they are killed", finish_seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
