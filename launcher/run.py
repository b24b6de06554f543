"""Run one service in the foreground, until SIGTERM or SIGINT."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Sequence

from common import log
from common.process import garbage, health
from common.process.child import report
from launcher import clocks, configuration, metrics, wiring

LOG = log.logger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def run(name: str, files: Sequence[str]) -> None:
    """Run conductor, scheduler, compute or console until a signal ends it, in order.

    Raises ConfigurationError when it can't be made from the configuration.
    """
    garbage.limit_arenas()
    conf = configuration.load(files, service=name)
    log.setup(conf, name)
    # Blocked in every thread that is started from here on: only the wait below takes them. A
    # handler would not run while its signal went to another thread and this one waits.
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    process = wiring.Wiring(conf)
    timekeeper = clocks.start_of(clocks.of_service(name, conf, lambda: process.transport))
    service = wiring.SERVICES[name](process)
    service.start()
    metrics.listen(conf, name, clocks.checked(service.health, timekeeper))
    garbage.settle()
    LOG.info("The %s is running.", name)
    notify_systemd("READY=1")
    report(ready=True)
    try:
        signal.sigwait(_SIGNALS)
    finally:
        LOG.info("The %s is stopping.", name)
        notify_systemd("STOPPING=1")
        health.leave()
        service.stop()
        timekeeper.stop()


def notify_systemd(state: str) -> None:
    """Notify systemd (``Type=notify``), if it started this process and still listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.connect(address)
            channel.sendall(state.encode())
    except OSError as error:
        # The service still has to run, and to be stopped in order.
        LOG.warning("%s could not be sent to the service manager: %s", state, error)
