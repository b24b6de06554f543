"""The options of the placement service."""

from __future__ import annotations

from oslo_config import cfg
from oslo_middleware import cors
from oslo_policy import opts as policy_opts

DATABASE_GROUP = "placement_database"
GROUP = "placement"
NOBODY = "00000000-0000-0000-0000-000000000000"

DATABASE_OPTIONS = (
    cfg.StrOpt(
        "connection",
        secret=True,
        help="SQLAlchemy URL of the placement database: sqlite:////path/to/file, "
        "postgresql+psycopg://user:password@host/name. Without it the service doesn't start.",
    ),
    cfg.IntOpt(
        "connections",
        default=16,
        min=1,
        max=1000,
        help="Connections of a process to the database for reads, and the same number for writes "
        "(SQLite: one). As many as the process has threads are enough; with fewer, requests "
        "wait.",
    ),
)
OPTIONS = (
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Return allocation candidates in random order, and a random choice of them when the "
        "request has a limit. Otherwise the oldest providers come first.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        min=-1,
        help="The most allocation candidates that are computed for one request; -1: no limit. "
        "Trees with many equal children can be combined in very many ways.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="depth-first",
        choices=("depth-first", "breadth-first"),
        help="Which candidates come first, and so which remain under a limit: all of one tree "
        "before the next (depth-first), or one of every tree before the second of any.",
    ),
    cfg.IntOpt(
        "allocation_conflict_retry_count",
        default=10,
        min=1,
        max=1000,
        help="How often a claim is tried again, inside the service, when the database rolled it "
        "back because of another one.",
    ),
    cfg.IntOpt(
        "max_request_body_size",
        default=16 * 1024 * 1024,
        min=1024,
        help="Bytes of the largest request body; a larger one is answered 413.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=NOBODY,
        help="Project of the consumers that clients older than microversion 1.8 create.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=NOBODY,
        help="User of the consumers that clients older than microversion 1.8 create.",
    ),
)

_IDENTITY = ["X-Auth-Token", "X-Openstack-Request-Id"]
_VERSION = "OpenStack-API-Version"
CORS_DEFAULTS = {
    "allow_headers": [
        *_IDENTITY,
        *("X-Identity-Status", "X-Roles", "X-Service-Catalog", "X-User-Id", "X-Tenant-Id"),
        _VERSION,
    ],
    "expose_headers": [*_IDENTITY, "X-Subject-Token", "X-Service-Token", _VERSION],
    "allow_methods": ["GET", "PUT", "POST", "DELETE", "PATCH"],
}


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options on `conf`, those of oslo.policy included."""
    conf.register_opts(DATABASE_OPTIONS, group=DATABASE_GROUP)
    conf.register_opts(OPTIONS, group=GROUP)
    policy_opts.set_defaults(conf)
    # Browsers of other origins are answered only where [cors] allowed_origin names them. What
    # they may send and see else is Placement's default; oslo.middleware's is nothing.
    cors.set_defaults(**CORS_DEFAULTS)
    conf.register_opts(cors.CORS_OPTS, group="cors")


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(DATABASE_GROUP, list(DATABASE_OPTIONS)), (GROUP, list(OPTIONS))]
