"""Options of the APIs."""

from __future__ import annotations

from oslo_config import cfg

GROUP = "api"

OPTIONS = [
    cfg.IntOpt(
        "max_limit",
        default=1000,
        min=1,
        max=10_000,
        help="The most items in one answer to a list request; clients fetch further pages.",
    ),
    cfg.StrOpt(
        "compute_link_prefix",
        help="Public URL of the compute API up to, not including, /v2.1 (such as "
        "https://cloud.example.org/compute), for the links in its answers. Without it links "
        "follow the request: its Host, what [web] trusted_proxies say, and the mount point.",
    ),
    cfg.BoolOpt(
        "enable_instance_password",
        default=True,
        help="Whether the answer to a server create has adminPass.",
    ),
    cfg.IntOpt(
        "service_down_seconds",
        default=60,
        min=5,
        help="Seconds after its last report until a compute service counts as down.",
    ),
]


def register(conf: cfg.ConfigOpts) -> None:
    """Declare these options as `[api]` on `conf`; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, list(OPTIONS))]
