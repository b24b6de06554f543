"""Options of a console proxy; those that the APIs need too are in `common.resources.consoles`."""

from __future__ import annotations

import socket

from oslo_config import cfg

from common.resources import consoles
from common.resources.consoles import GROUP

OPTIONS = [
    cfg.StrOpt("host", default="127.0.0.1", help="Address that the proxy listens on."),
    cfg.PortOpt("port", default=6080, help="Port that the proxy listens on."),
    cfg.StrOpt("cert_file", help="Certificate chain (PEM) of the proxy; without it no TLS."),
    cfg.StrOpt("key_file", help="Private key (PEM) of the certificate."),
    cfg.StrOpt(
        "relay_url",
        default=f"ws://{socket.getfqdn()}:6080/relay",
        sample_default="ws://<host name>:6080/relay",
        help="URL under which the workers with the agents reach this proxy, not another one "
        "behind the same load balancer. wss where cert_file is set.",
    ),
    cfg.ListOpt(
        "allowed_origins",
        default=[],
        help="Further hosts whose pages may open consoles. The proxy's own always may, as the "
        "request's Host names it.",
    ),
    cfg.IntOpt(
        "sessions",
        default=200,
        min=1,
        max=10_000,
        help="Consoles that may be open through this proxy at the same time.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options; idempotent."""
    consoles.register(conf)
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, [*consoles.OPTIONS, *OPTIONS])]
