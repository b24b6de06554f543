"""One service as a process in the foreground, until SIGTERM or SIGINT."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence

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
    try:
        stop.wait()
    finally:
        LOG.info("%s stops.", name)
        service.stop()
