"""Rate limits of an API, by project and user: who asks too often is answered 429.

The token says who asks; addresses and headers count for nothing. Other services (the role
`service`) have no limit: their work ends with an error otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import falcon
from oslo_config import cfg, types

from common.context import RequestContext
from common.errors import MicronovaError
from common.option_types import Form
from web.buckets import Buckets, Rate

GROUP = "rate_limits"
ALL = "all"

_RATES = types.Dict(value_type=Form(Rate.parse))
_FORM = (
    "By API: compute, image, network, block-storage, clustering, placement, or all for those "
    "that aren't named; each with requests a second and at once, such as compute:20/100. Empty: "
    "no limit."
)

OPTIONS = [
    cfg.Opt("project", type=_RATES, default={}, help=f"Of all users of a project. {_FORM}"),
    cfg.Opt("user", type=_RATES, default={}, help=f"Of one user, in whichever project. {_FORM}"),
    cfg.Opt(
        "administrator",
        type=_RATES,
        default={},
        help=f"Of one user with the role admin, for whom the others don't count. {_FORM}",
    ),
]


class TooManyRequests(MicronovaError):
    """The project or the user has asked more often than it may; details: seconds."""

    code = "micronova.too_many_requests"
    sentence = "Too many requests."


def register(conf: cfg.ConfigOpts) -> None:
    """Declare these options on `conf`; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options for the sample configuration."""
    return [(GROUP, list(OPTIONS))]


class RateLimits:
    """Falcon middleware: refuses requests over the limits, before their bodies are read."""

    def __init__(self, project: Rate | None, user: Rate | None, admin: Rate | None) -> None:
        self._project, self._user, self._admin = project, user, admin
        self._buckets = Buckets()

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Raise TooManyRequests over a limit."""
        wanted = list(self._limits(req.context.ctxt))
        wait = self._buckets.take(wanted) if wanted else 0.0
        if wait:
            seconds = max(1, math.ceil(wait))
            raise TooManyRequests(
                f"Too many requests; the next one may be sent in {seconds} s.", seconds=seconds
            )

    def _limits(self, ctxt: RequestContext) -> Iterator[tuple[str, Rate]]:
        """Yield what a request counts for."""
        if not ctxt.user_id or "service" in ctxt.roles:
            return
        if "admin" in ctxt.roles:
            if self._admin is not None:
                yield f"admin {ctxt.user_id}", self._admin
            return
        if self._user is not None:
            yield f"user {ctxt.user_id}", self._user
        if self._project is not None and ctxt.project_id:
            yield f"project {ctxt.project_id}", self._project


def of(conf: cfg.ConfigOpts, service_type: str) -> RateLimits | None:
    """Return the limits of an API; None: it has none."""
    register(conf)
    options = conf[GROUP]
    rates = [_rate(options[name], service_type) for name in ("project", "user", "administrator")]
    return RateLimits(*rates) if any(rates) else None


def _rate(by_type: Mapping[str, str], service_type: str) -> Rate | None:
    text = by_type.get(service_type, by_type.get(ALL))
    return None if text is None else Rate.parse(text)
