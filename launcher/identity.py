"""The Keystone of a cloud that has no other one, as a service of its own, on SQLite."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from oslo_config import cfg

from common import log
from common.errors import ConfigurationError, Unavailable
from identity.clouds import project_id, write_client_files
from identity.keystone import GROUP, SERVICE_GROUP, Keystone
from identity.layout import EMBEDDED, GRANTS, PEOPLE, SEPARATE, catalog
from identity.passwords import load_passwords
from launcher import configuration
from launcher.run import notify_systemd

NAME = "identity"
LOG = log.logger(__name__)

_READY_SECONDS = 240
_ENDS = (signal.SIGTERM, signal.SIGINT)


def run(files: Sequence[str]) -> None:
    """Run it until a signal ends it. Raises ConfigurationError, or Unavailable once it has died.

    Its first start makes database, keys, users and catalog; a later one what has changed.
    """
    conf = configuration.load(files, service=NAME)
    log.setup(conf, NAME)
    keystone = _keystone(conf)
    try:
        _start(conf, keystone)
        # Now that the child runs, which would inherit it: the wait below takes them.
        signal.pthread_sigmask(signal.SIG_BLOCK, (*_ENDS, signal.SIGCHLD))
        LOG.info("Keystone is running at %s.", keystone.auth_url)
        notify_systemd("READY=1")
        while keystone.pid is not None:
            if signal.sigwait((*_ENDS, signal.SIGCHLD)) != signal.SIGCHLD:
                return
        raise Unavailable(f"Keystone ended; see {keystone.log_path}.")
    finally:
        notify_systemd("STOPPING=1")
        keystone.stop()


def _keystone(conf: cfg.ConfigOpts) -> Keystone:
    options, shared = conf[SERVICE_GROUP], conf[GROUP]
    return Keystone(
        Path(options.state_dir),
        options.host,
        options.port,
        threads=shared.threads,
        login_failures=shared.login_failures,
    )


def _start(conf: cfg.ConfigOpts, keystone: Keystone) -> None:
    options = conf[SERVICE_GROUP]
    given = dict(options.service_passwords)
    if options.service_password:
        given[EMBEDDED] = options.service_password
    users = dict.fromkeys((*PEOPLE, *SEPARATE, *given))
    if unknown := sorted(users.keys() - GRANTS.keys()):
        raise ConfigurationError(
            f"[{SERVICE_GROUP}] service_passwords: there is no user {unknown[0]}."
        )
    passwords = load_passwords(Path(options.state_dir), given, tuple(users))
    auth_url = f"{(options.public_url or keystone.auth_url).removesuffix('/v3')}/v3"
    placement = {"placement": options.placement_url}
    endpoints = catalog(auth_url, options.base_url, placement)
    keystone.prepare(endpoints, passwords, lambda step: LOG.info("%s", step))
    keystone.start()
    keystone.wait_ready(_READY_SECONDS)
    project = project_id(keystone.auth_url, passwords)
    write_client_files(Path(options.state_dir), auth_url, passwords, project)
