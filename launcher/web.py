"""The WSGI applications of this process, made from the configuration that it was given."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from common import log
from common.errors import ConfigurationError
from common.process import garbage
from common.process.health import Health
from common.process.timekeeping import Ask
from launcher import clocks, configuration, metrics, wiring
from launcher.mount import Mount
from web import serving
from web.proxies import Proxies

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

    from oslo_config import cfg

TOGETHER: Mapping[str, Sequence[str]] = {
    "public": ("compute", "image", "network", "volume", "clustering"),
    "all": tuple(wiring.APIS),
}
"""{name: APIs that are served on one port, each below its own name}."""

DASHBOARD = "dashboard"

NAMES = frozenset({*wiring.APIS, *TOGETHER, DASHBOARD})


_Prepared: TypeAlias = "tuple[cfg.ConfigOpts, WSGIApplication, Health, Ask | None]"

_prepared: dict[str, _Prepared] = {}
"""{name: the API that this process, or its parent before the fork, made ahead}."""


@functools.cache
def application(name: str) -> WSGIApplication:
    """Return one API, or those of a name in `TOGETHER`; made once, or by `preload`.

    Raises ConfigurationError, also if this machine's clock is off too far.
    """
    garbage.load()
    garbage.limit_arenas()
    conf, made, health, clock = _prepared.pop(name) if name in _prepared else _prepare(name)
    log.setup(conf, name)
    timekeeper = clocks.start_of(clock)
    serving.drain_seconds = conf.web.drain_seconds
    health = clocks.checked(health, timekeeper)
    metrics.listen(conf, metrics.of_application(name), health)
    garbage.settle()
    return made


def preload(name: str) -> None:
    """Make an API ahead, for the workers that are forked afterwards to share its memory.

    Making it opens nothing: connections and threads begin with a worker's first request. Call it
    again before forking workers that should read a changed configuration. Errors are not raised
    here: the workers report an unusable configuration.
    """
    garbage.load()
    garbage.limit_arenas()
    _prepared.pop(name, None)
    try:
        _prepared[name] = _prepare(name)
    except ConfigurationError:
        return
    garbage.settle()


def _prepare(name: str) -> _Prepared:
    service = DASHBOARD if name == DASHBOARD else None
    conf = configuration.load(configuration.files_of_environment(), service=service)
    process = wiring.Wiring(conf)
    made = _made(name, process)
    return conf, made, process.health or Health(), process.clock


def _made(name: str, process: wiring.Wiring) -> WSGIApplication:
    if name == DASHBOARD:
        return Mount({DASHBOARD: wiring.dashboard(process)})
    if name in TOGETHER:
        made = {path: wiring.APIS[path](process) for path in TOGETHER[name]}
        return Proxies(Mount(made), process.conf)
    return wiring.APIS[name](process)
