"""Options of consoles that the APIs and the proxies share."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "console"

OPTIONS = [
    cfg.StrOpt(
        "novnc_url",
        default="http://127.0.0.1:6080/vnc_auto.html",
        help="Public URL of the page that shows a server's screen, on a console proxy; https "
        "where a proxy in front, or cert_file, does TLS. A parameter path in it is put before "
        "the token, for proxies that are served below a path.",
    ),
    cfg.StrOpt(
        "serial_url",
        default="ws://127.0.0.1:6080/",
        help="Public URL of the websocket of serial consoles, on a console proxy.",
    ),
    cfg.IntOpt(
        "token_seconds",
        default=600,
        min=10,
        max=86400,
        help="Seconds within which the URL of a console can be opened, once. An open console is "
        "not closed after that time.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, list(OPTIONS))]
