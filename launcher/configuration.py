"""The configuration of every service: which modules declare options, read once, passed down."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from keystoneauth1 import loading
from oslo_config import cfg

from common import config, log
from common.clients import credentials
from common.errors import ConfigurationError
from common.metrics import config as metrics
from common.resources import quotas

VARIABLE = "MICRONOVA_CONFIG"
"""Names the configuration files of WSGI processes, separated by colons."""

DEFAULT_FILE = "/etc/micronova/micronova.conf"

PREPARATION = "preparation"
"""What upgrades the databases and probes hypervisors, before the embedded cloud starts."""

CLIENT_GROUPS: tuple[str, ...] = ("placement",)
"""Groups in which services log in to another one."""


def registers(service: str | None = None) -> Iterable[config.Register]:
    """Return what declares the options of a service that answers messages, or of `PREPARATION`;
    None: of everything.

    Such a process doesn't import what declares the others' options: the token check and the
    databases weigh 20 MiB, and take a third of a second.
    """
    if service == _APART:
        return (log.register, metrics.register, *_dashboard())
    from common import rpc

    logins = (functools.partial(credentials.register, group=group) for group in CLIENT_GROUPS)
    if service is None:
        own = _everything()
    else:
        own = _preparation() if service == PREPARATION else _OF_SERVICE[service]()
    return (log.register, rpc.register, metrics.register, *logins, *own)


def _conductor() -> Iterable[config.Register]:
    import conductor.config
    import db.engine
    from common.resources import consoles

    return (
        *(db.engine.register, quotas.register, consoles.register, conductor.config.register),
        *_scheduler(),  # it may have one of its own
    )


def _scheduler() -> Iterable[config.Register]:
    import scheduler.config

    return (scheduler.config.register,)


def _compute() -> Iterable[config.Register]:
    import compute.config

    return (compute.config.register,)


def _console() -> Iterable[config.Register]:
    import console.config

    return (console.config.register,)


def _dashboard() -> Iterable[config.Register]:
    import dashboard.config
    from web import proxies

    return (dashboard.config.register, proxies.register)


def _identity() -> Iterable[config.Register]:
    import identity.keystone

    return (identity.keystone.register,)


_OF_SERVICE: Mapping[str, Callable[[], Iterable[config.Register]]] = {
    "conductor": _conductor,
    "scheduler": _scheduler,
    "compute": _compute,
    "console": _console,
    "dashboard": _dashboard,
    "identity": _identity,
}


_APART = "dashboard"
"""Sends no messages and has no login of its own: the bus weighs 15 MiB."""


def _preparation() -> Iterable[config.Register]:
    import db.engine
    import placement.config

    return (db.engine.register, placement.config.register, *_compute())


def _everything() -> Iterable[config.Register]:
    import api.config
    import api.image.config
    import dashboard.config
    import identity.keystone
    import placement.config
    import web.policy
    from web import audit, auth, proxies, rate_limits

    services = (register for of_service in _OF_SERVICE.values() for register in of_service())
    return (
        *services,
        audit.register,
        auth.register,
        proxies.register,
        rate_limits.register,
        web.policy.register,
        api.config.register,
        api.image.config.register,
        placement.config.register,
        identity.keystone.register,
        dashboard.config.register,
    )


def load(
    files: Sequence[str], *more: config.Register, service: str | None = None
) -> cfg.ConfigOpts:
    """Return the configuration that these files hold, all options declared, or a process's.

    `more` declares further ones.

    Raises ConfigurationError, one line, for a missing file or a value that isn't allowed.
    """
    missing = [name for name in files if not Path(name).is_file()]
    if missing:
        raise ConfigurationError(f"There is no configuration file {missing[0]}.")
    return config.load([*registers(service), *more], files=files)


def register_logins(conf: cfg.ConfigOpts) -> None:
    """Declare the options of the chosen ways to log in, which otherwise happens at the login."""
    from web import auth

    for group in (auth.GROUP, *CLIENT_GROUPS):
        kind = conf[group].auth_type
        if kind:
            options = loading.get_auth_plugin_conf_options(kind)
            conf.register_opts(options, group=group)


def register_clusters(conf: cfg.ConfigOpts) -> None:
    """Declare the groups of the configured clusters, which otherwise happens at the first use."""
    from compute.hypervisor.proxmox.settings import CLUSTER_OPTIONS

    for name in conf.proxmox.clusters:
        conf.register_opts(CLUSTER_OPTIONS, group=f"proxmox:{name}")


def found_files(embedded: Path) -> list[str]:
    """Return the files of this machine's cloud: those that `MICRONOVA_CONFIG` names, the default
    one, or that of the embedded cloud. Raises ConfigurationError when there is none."""
    if VARIABLE in os.environ or Path(DEFAULT_FILE).is_file():
        return files_of_environment()
    if embedded.is_file():
        return [str(embedded)]
    raise ConfigurationError(
        f"There is no configuration: neither {DEFAULT_FILE} nor {embedded}; "
        "name it with --config-file or --state-dir."
    )


def files_of_environment() -> list[str]:
    """Return the files that `MICRONOVA_CONFIG` names, or the default one."""
    return [name for name in os.environ.get(VARIABLE, DEFAULT_FILE).split(":") if name]
