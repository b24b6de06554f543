"""Options of the dashboard."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "dashboard"

OPTIONS = [
    cfg.StrOpt("auth_url", help="URL of Keystone (…/v3), where users log in."),
    cfg.StrOpt("region_name", help="Region whose endpoints are used; without it the first one's."),
    cfg.StrOpt(
        "interface",
        default="public",
        choices=("public", "internal"),
        help="Which endpoints of the catalog are called.",
    ),
    cfg.StrOpt("cafile", help="CA certificates (PEM) for Keystone and the APIs."),
    cfg.StrOpt("user_domain", default="Default", help="Domain offered at the login."),
    cfg.StrOpt(
        "state_dir",
        default="/var/lib/micronova/dashboard",
        help="Directory for sessions and for the key that encrypts them, readable by the "
        "dashboard alone. Several hosts behind one address need the same session.key in it.",
    ),
    cfg.ListOpt(
        "memcached_servers",
        default=[],
        help="HOST:PORT of the memcached servers that keep the sessions, where several hosts "
        "serve the dashboard. Without them an SQLite file in state_dir does, which all workers "
        "of one host share. A session that memcached evicts ends.",
    ),
    cfg.StrOpt(
        "memcached_ca_file",
        help="CA certificates (PEM) of memcached_servers, which are connected to by TLS then.",
    ),
    cfg.IntOpt(
        "idle_minutes",
        default=30,
        min=1,
        max=1440,
        help="Minutes without a request after which a session ends.",
    ),
    cfg.IntOpt(
        "session_hours",
        default=8,
        min=1,
        max=168,
        help="Hours after the login at which a session ends. It ends with its token, if earlier.",
    ),
    cfg.IntOpt(
        "login_failures",
        default=5,
        min=1,
        max=1000,
        help="Failed logins of one user from one address, after which further ones are refused "
        "for login_pause_seconds.",
    ),
    cfg.IntOpt(
        "login_failures_of_address",
        default=50,
        min=1,
        max=100_000,
        help="Failed logins from one address (one IPv4 address, one IPv6 /64), whichever the "
        "users, after which further ones from there are refused for login_pause_seconds.",
    ),
    cfg.IntOpt(
        "login_pause_seconds",
        default=300,
        min=1,
        max=86400,
        help="How long failed logins are counted.",
    ),
    cfg.IntOpt(
        "page_size", default=50, min=1, max=1000, help="Rows of a list, unless the user chooses."
    ),
    cfg.IntOpt(
        "request_seconds",
        default=60,
        min=1,
        max=600,
        help="How long an answer of an API is waited for.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)
