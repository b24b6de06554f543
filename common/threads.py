"""Makes OpenStack's libraries use threads of the system."""

from __future__ import annotations

from oslo_service import backend


def without_eventlet() -> None:
    """Choose threads of the system; called before oslo.messaging or Keystone is imported.

    ``common`` has made eventlet look missing to them.
    """
    backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
