"""gunicorn's configuration file in Keystone's process: report to the parent, and end with it."""

from __future__ import annotations

import signal
from typing import Any

from common.child import die_with_parent, report
from web.workers import watch


def when_ready(server: Any) -> None:
    """Report each worker that ends; called by gunicorn before it has any."""
    watch(server, lambda how: report(ended=how))


def post_worker_init(worker: Any) -> None:
    """Report that the application is loaded; called by gunicorn in the worker."""
    die_with_parent(signal.SIGTERM)  # the parent is gunicorn's master
    report(ready=True)
