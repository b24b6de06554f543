"""Keystone's WSGI application, loaded by gunicorn in Keystone's own process.

Keystone reads `sys.argv` as its own command line when it is imported; gunicorn's arguments
there would end the worker, so they are removed first. It loads its policy at the first request;
concurrent requests would be refused by a policy loaded in part, so it is loaded here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.argv[1:] = []

from keystone.common.rbac_enforcer.enforcer import RBACEnforcer  # noqa: E402
from keystone.wsgi.api import application as keystone  # noqa: E402

from common.log import escape_output  # noqa: E402
from identity import events  # noqa: E402
from identity.guard import Guard  # noqa: E402
from identity.logins import Logins  # noqa: E402
from identity.refusals import log_in_one_line  # noqa: E402
from identity.transactions import queue_writers  # noqa: E402

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

escape_output()
log_in_one_line()
events.write_to(Path(os.environ["OS_KEYSTONE_CONFIG_DIR"]).parent / "log")
queue_writers()
RBACEnforcer()._enforcer.load_rules()


def application(login_failures: int) -> WSGIApplication:
    """Return Keystone behind its guard; so many logins of an address may fail, 0: any number."""
    return Guard(Logins(keystone, login_failures))
