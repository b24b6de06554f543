"""One service as a process in the foreground, until SIGTERM or SIGINT."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Sequence

from cli.embedded.tell import tell
from cli.services import configuration, wiring
from common import log

LOG = log.logger(__name__)


def run(name: str, files: Sequence[str]) -> None:
    """Run conductor, scheduler or compute until a signal ends it, in order.

    Raises ConfigurationError when it can't be made from the configuration.
    """
    conf = configuration.load(files)
    log.setup(conf, name)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    service = wiring.SERVICES[name](wiring.Wiring(conf))
    service.start()
    LOG.info("%s runs.", name)
    notify_systemd("READY=1")
    tell(ready=True)
    try:
        stop.wait()
    finally:
        LOG.info("%s stops.", name)
        notify_systemd("STOPPING=1")
        service.stop()


def notify_systemd(state: str) -> None:
    """Tell systemd (``Type=notify``), if it started this process."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.connect(address)
        channel.sendall(state.encode())
