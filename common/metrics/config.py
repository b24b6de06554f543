"""``[metrics]``: where a service answers Prometheus and health checks."""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg

#: service → port, unless one is configured; a WSGI application that is not named has the first
PORTS: Mapping[str, int] = {
    "api": 18774,
    "conductor": 18775,
    "scheduler": 18776,
    "compute": 18777,
    "placement": 18778,
    "console": 18779,
    "dashboard": 18780,
}

OPTIONS = [
    cfg.StrOpt(
        "host",
        default="127.0.0.1",
        help="Address on which each service answers /metrics, /healthz, /readyz and /inservice. "
        "None of them asks for a token: listen on a network of the operators only.",
    ),
    cfg.PortOpt(
        "port",
        help="Its port; 0: none. By default each kind of service has one of its own: "
        + ", ".join(f"{name} {number}" for name, number in PORTS.items())
        + ". Services of one kind on one machine need different ones. A port that is in use "
        "doesn't keep a service from starting: it is tried again.",
    ),
    cfg.IntOpt(
        "hosts",
        default=200,
        min=0,
        help="Hosts and storages of one worker that have numbers of their own; a worker with "
        "more hosts shows none, and the conductors' sums by cluster remain.",
    ),
    cfg.BoolOpt(
        "guests",
        default=False,
        help="Whether a compute worker has numbers of each server on its hosts, with the IDs of "
        "server and project as labels: 10 lines for each server in each scrape. Everybody who "
        "may scrape it reads these.",
    ),
    cfg.IntOpt(
        "record_seconds",
        default=30,
        min=1,
        max=3600,
        help="How old what a conductor says of the database may be. It is read again only when it "
        "is asked for.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options; idempotent."""
    conf.register_opts(OPTIONS, group="metrics")


def port(conf: cfg.ConfigOpts, service: str) -> int:
    """Return the port of a service; 0: it answers nowhere."""
    configured: int | None = conf.metrics.port
    return PORTS.get(service, PORTS["api"]) if configured is None else configured
