"""oslo.messaging, imported after the threads of OpenStack's libraries were chosen.

Everything imports it from here: it loads oslo.service, which chooses eventlet otherwise.
"""

from __future__ import annotations

from common.threads import without_eventlet

without_eventlet()

import oslo_messaging  # noqa: E402
from oslo_messaging import opts as messaging_options  # noqa: E402
from oslo_messaging._drivers import amqpdriver  # noqa: E402
from oslo_messaging._drivers import base as driver_base  # noqa: E402
from oslo_messaging._metrics import client as metrics_options  # noqa: E402
from oslo_messaging._tracing import client as tracing_options  # noqa: E402
from oslo_messaging.rpc.server import RPCServer  # noqa: E402

__all__ = [
    "RPCServer",
    "amqpdriver",
    "driver_base",
    "messaging_options",
    "metrics_options",
    "oslo_messaging",
    "tracing_options",
]
