"""The worker class of the APIs for gunicorn: ``worker_class = "micronova.serving.Worker"``."""

from __future__ import annotations

import micronova  # noqa: F401  (puts the packages on the import path)
from web.serving import Worker

__all__ = ["Worker"]
