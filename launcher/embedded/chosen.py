"""Options that are given to `micronova up` by name, checked before anything starts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from oslo_config import cfg

from common.errors import ConfigurationError
from compute.hypervisor.proxmox.settings import CLUSTER_OPTIONS
from identity import keystone
from launcher import configuration, listing
from launcher.embedded.settings import Sections

#: a group may have dots: a cluster's name is a part of it
_GIVEN = re.compile(r"(.+)\.(\w+)=(.*)")
_CLUSTER = "proxmox:"


def chosen(given: Iterable[str]) -> Sections:
    """Return the options of ``group.option=value``. The last value of an option counts; an option
    that a file may name several times gets all its values, a line each.

    Raises ConfigurationError, one line, for an option that doesn't exist or an invalid value.
    """
    conf, made = configuration.load([], keystone.register), Sections()
    for text in given:
        match = _GIVEN.fullmatch(text)
        if match is None:
            raise ConfigurationError(f"--set {text}: it is not <group>.<option>=<value>.")
        group, option, value = match.groups()
        if group.startswith(_CLUSTER):
            conf.register_opts(CLUSTER_OPTIONS, group=group)
        before = made.get(group, {}).get(option)
        several = isinstance(listing.groups(conf).get(group, {}).get(option), cfg.MultiOpt)
        lines = [*(before.split("\n") if several and before is not None else ()), value]
        try:
            conf.set_override(
                option, lines if several else value, None if group == "DEFAULT" else group
            )
        except (cfg.NoSuchGroupError, cfg.NoSuchOptError) as error:
            raise ConfigurationError(f"--set {text}: there is no such option.") from error
        except ValueError as error:
            raise ConfigurationError(f"--set {text}: {error}") from error
        made.setdefault(group, {})[option] = "\n".join(lines)
    return made
