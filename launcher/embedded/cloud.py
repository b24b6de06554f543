"""The cloud process: gunicorn with every API on one port, and the services beside them.

    python -m launcher.embedded.cloud <configuration file> <number of the listening socket> \
        <number of the console proxy's> <number of that for metrics>

gunicorn's master imports next to nothing of ours; its one worker carries everything, so that the
services share one message bus, one session with Keystone and one interpreter. The worker reports
its start to the parent. A worker that dies is replaced by the master, which reports how it ended.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication

from common.process import garbage
from common.process.child import die_with_parent, report
from web.workers import watch

if TYPE_CHECKING:
    from launcher.embedded.worker import Cloud

THREADS = 32
"""Requests served at the same time."""

GRACEFUL_SECONDS = 120
"""Time that a stopping worker has before it is killed."""


class CloudServer(BaseApplication):  # type: ignore[misc]
    """gunicorn, configured; the application is made in the worker."""

    def __init__(
        self, config_file: str, listener: int, console_listener: int, metrics_listener: int
    ) -> None:
        self._config_file = config_file
        self._listener = listener
        self._others = (console_listener, metrics_listener)
        super().__init__()

    @functools.cached_property
    def cloud(self) -> Cloud:
        """What the worker carries; imported there only."""
        from launcher.embedded.worker import Cloud

        return Cloud(self._config_file, *self._others)

    def load_config(self) -> None:
        """Set gunicorn's options."""
        options = {
            "bind": [f"fd://{self._listener}"],
            "workers": 1,
            "worker_class": "web.serving.Worker",
            "threads": THREADS,
            "keepalive": 75,
            "worker_connections": 1000,
            "timeout": 120,
            # Longer than the services give to what they have begun.
            "graceful_timeout": GRACEFUL_SECONDS,
            # web.wsgi decides about proxies, from [web] trusted_proxies.
            "forwarded_allow_ips": "",
            "sendfile": False,
            "control_socket_disable": True,
            "proc_name": "micronova-cloud",
            "errorlog": "-",
            "loglevel": "warning",
            "when_ready": self._listening,
            "post_worker_init": self._started,
            "worker_exit": self._ended,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Make the application; called in the worker."""
        die_with_parent(signal.SIGTERM)  # the parent is gunicorn's master
        return self.cloud.application()

    def _listening(self, server: Any) -> None:
        watch(server, lambda how: report(ended=how))

    def _started(self, worker: Any) -> None:
        self.cloud.start(functools.partial(os.kill, os.getppid(), signal.SIGTERM))

    def _ended(self, server: Any, worker: Any) -> None:
        if "cloud" in self.__dict__:
            self.cloud.stop()


def main(arguments: list[str]) -> None:
    """Serve until a signal ends the process."""
    garbage.load()
    config_file, *numbers = arguments
    # gunicorn reads its own options from there.
    sys.argv[1:] = []
    listener, console_listener, metrics_listener = map(int, numbers)
    CloudServer(config_file, listener, console_listener, metrics_listener).run()


if __name__ == "__main__":
    main(sys.argv[1:])
