"""Options of traces."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "tracing"

OPTIONS = [
    cfg.URIOpt(
        "endpoint",
        schemes=["http", "https"],
        help="Where traces are sent, by OTLP over HTTP, e.g. http://collector:4318; /v1/traces is "
        "added where there is no path. Not set: none are made. Needs micronova[tracing]. Headers, "
        "certificates and compression are OpenTelemetry's environment variables, "
        "OTEL_EXPORTER_OTLP_HEADERS and so on.",
    ),
    cfg.FloatOpt(
        "ratio",
        default=1.0,
        min=0.0,
        max=1.0,
        help="The share of requests whose operations are sent; failed ones always are. A request "
        "with a traceparent is sent as that one says, whatever the share.",
    ),
    cfg.StrOpt(
        "service_name", default="micronova", help="The service.name of all spans.", max_length=255
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)
