"""For every test: oslo.messaging is first imported the way the services do, without eventlet."""

from __future__ import annotations

import common.rpc  # noqa: F401
