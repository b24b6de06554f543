"""Keystone's WSGI application, loaded by gunicorn in Keystone's own process.

Keystone reads `sys.argv` as its own command line when it is imported; gunicorn's arguments
there would end the worker, so they are removed first.
"""

from __future__ import annotations

import sys

sys.argv[1:] = []

from keystone.wsgi.api import application  # noqa: E402

__all__ = ["application"]
