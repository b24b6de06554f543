"""Makes OpenStack's libraries use threads of the system."""

from __future__ import annotations

import sys

from oslo_service import backend


def without_eventlet() -> None:
    """Make eventlet look missing; called before oslo.messaging or Keystone is imported.

    They import oslo.service and futurist, which load it wherever it is installed.
    """
    sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
    backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
