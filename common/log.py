"""Logging: oslo.log, one format for every service, loggers named ``micronova.*``."""

from __future__ import annotations

import logging

from oslo_config import cfg
from oslo_log import log as oslo_log

#: request ID, global request ID, user, project and server in every line
CONTEXT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[%(global_request_id)s %(request_id)s project %(project_id)s server %(server_uuid)s] "
    "%(message)s"
)
DEFAULT_FORMAT = (
    "%(asctime)s.%(msecs)03d %(process)d %(levelname)s %(name)s "
    "[- - project - server -] %(message)s"
)

#: libraries that log secrets or noise below these levels
LEVELS = [
    "urllib3=WARNING",
    "requests=WARNING",
    "keystoneauth=WARNING",
    "keystonemiddleware=WARNING",
    "proxmoxer=WARNING",
    "oslo.messaging=WARNING",
    "oslo_messaging=WARNING",
    "amqp=WARNING",
    "stevedore=WARNING",
    "sqlalchemy=WARNING",
    "kombu=WARNING",
    "pycdlib=WARNING",
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare oslo.log's options with our formats as defaults; idempotent."""
    oslo_log.register_options(conf)
    oslo_log.set_defaults(logging_context_format_string=CONTEXT_FORMAT, default_log_levels=LEVELS)
    conf.set_default("logging_default_format_string", DEFAULT_FORMAT)


def setup(conf: cfg.ConfigOpts, service: str) -> None:
    """Start logging of this process as ``micronova-<service>``."""
    oslo_log.setup(conf, f"micronova-{service}")


def logger(module: str) -> logging.LoggerAdapter[logging.Logger]:
    """Return the logger of a module: ``logger(__name__)``."""
    adapter: logging.LoggerAdapter[logging.Logger] = oslo_log.getLogger(f"micronova.{module}")
    return adapter
