"""The embedded Keystone's process: gunicorn, and before it what its folder lacks.

    python -m identity.server <number of the listening socket> <threads> <failed logins>

The master imports Keystone, which costs more than most of its work, and nothing more: it opens no
database. The worker that serves is forked from it, and so is the child that makes database, keys,
users and catalog first, when a job is given on standard input: one line of JSON, so that no
password shows in an argument list or in an environment.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from gunicorn.app.base import BaseApplication

from common.process import garbage
from common.process.child import die_with_parent, report
from common.threads import without_eventlet
from identity.late import import_at_use
from web.workers import watch

#: what only an identity provider for other clouds needs: importing it takes as long as the rest
_SELDOM_USED = ("saml2.client_base", "saml2.sigver")


class Server(BaseApplication):  # type: ignore[misc]
    """gunicorn, configured; the application is made in the worker."""

    def __init__(self, listener: int, threads: int, login_failures: int) -> None:
        self._listener = listener
        self._threads = threads
        self._login_failures = login_failures
        super().__init__()

    def load_config(self) -> None:
        """Set gunicorn's options."""
        options = {
            "bind": [f"fd://{self._listener}"],
            "workers": 1,
            "threads": self._threads,
            "worker_class": "web.serving.Worker",
            "keepalive": 75,
            "graceful_timeout": 1,
            "forwarded_allow_ips": "",
            "control_socket_disable": True,
            "proc_name": "micronova-keystone",
            "when_ready": _listening,
            "post_worker_init": _started,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """Make the application; called in the worker."""
        die_with_parent(signal.SIGTERM)  # the parent is gunicorn's master
        from identity.wsgi import application

        return application(self._login_failures)


def _listening(server: Any) -> None:
    """Report each worker that ends; called by gunicorn before it has any."""
    watch(server, lambda how: report(ended=how))


def _started(worker: Any) -> None:
    """Report that the application is loaded; called by gunicorn in the worker."""
    report(ready=True)


def _import() -> None:
    """What the forked ones share; Keystone takes `sys.argv` for its own command line."""
    sys.argv[1:] = []
    garbage.load()
    without_eventlet()
    import_at_use(*_SELDOM_USED)
    import keystone.cmd.bootstrap
    import keystone.server.flask.core  # noqa: F401


def _made(job: str) -> bool:
    """Carry the job out in a child; return whether that worked."""
    pid = os.fork()
    if pid == 0:
        die_with_parent()
        code = 1
        try:
            from identity import bootstrap

            bootstrap.make(job)
            code = 0
        except BaseException:  # noqa: BLE001 - it is logged, and the process ends
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return status == 0


def main(listener: int, threads: int, login_failures: int) -> int:
    """Serve until a signal ends the process; return the exit code where it can't."""
    job = sys.stdin.readline()
    report(step="loading Keystone")
    _import()
    garbage.settle()
    if job:
        if not _made(job):
            return 1
        report(made=True)
    Server(listener, threads, login_failures).run()
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:4])))
