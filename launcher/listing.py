"""Print a configuration with secrets masked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from oslo_config import cfg

MASK = "***"

_SECRET_WORDS = ("password", "secret", "private_key", "auth_token")


def groups(conf: cfg.ConfigOpts) -> dict[str, dict[str, cfg.Opt]]:
    """Return every option that is declared on `conf`: {group: {name: option}}, sorted."""
    found = {"DEFAULT": {name: info["opt"] for name, info in conf._opts.items()}}
    for group in conf._groups.values():
        found[group.name] = {name: info["opt"] for name, info in group._opts.items()}
    return {
        group: dict(sorted(found[group].items()))
        for group in sorted(found, key=lambda name: (name != "DEFAULT", name))
    }


def changed(conf: cfg.ConfigOpts) -> dict[str, dict[str, Any]]:
    """Return the defaults that hold in place of a library's: {group: {name: default}}."""
    declared = {"DEFAULT": conf._opts} | {one.name: one._opts for one in conf._groups.values()}
    return {
        group: {name: info["default"] for name, info in options.items() if "default" in info}
        for group, options in declared.items()
    }


def lines(conf: cfg.ConfigOpts, *, defaults: bool) -> Iterator[str]:
    """Yield the lines of a configuration file with the values that hold, secrets masked."""
    first = True
    for group, options in groups(conf).items():
        section = conf if group == "DEFAULT" else conf[group]
        shown = [
            (name, option)
            for name, option in options.items()
            if (defaults or is_set(conf, group, name))
            and not isinstance(option, cfg.SubCommandOpt)
        ]
        if not shown:
            continue
        if not first:
            yield ""
        first = False
        yield f"[{group}]"
        for name, option in shown:
            yield f"{name} = {text(option, section[name])}"


def is_set(conf: cfg.ConfigOpts, group: str, name: str) -> bool:
    """Return whether a file, the command line or the environment gave the option a value."""
    where = conf.get_location(name, None if group == "DEFAULT" else group)
    return where is not None and where.location is not cfg.Locations.opt_default


def text(option: cfg.Opt, value: Any) -> str:
    """Return a value as it is written in a file; a secret one masked."""
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ",".join(text(option, one) for one in value)
    if isinstance(value, dict):
        return ",".join(f"{key}:{text(option, one)}" for key, one in value.items())
    plain = str(value)
    if "://" in plain:
        return without_password(plain)
    named = isinstance(value, str) and any(word in option.dest for word in _SECRET_WORDS)
    return MASK if option.secret or named else plain


def without_password(url: str) -> str:
    """Return a URL with its passwords masked; it may name several hosts, as a transport's does.

    >>> without_password("rabbit://u:p@h1:1,u:q@h2:2/v")
    'rabbit://u:***@h1:1,u:***@h2:2/v'
    """
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    hosts = ",".join(_masked_host(host) for host in authority.split(","))
    return f"{scheme}{separator}{hosts}{slash}{path}"


def _masked_host(host: str) -> str:
    login, at, name = host.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{user}{colon}{MASK}{at}{name}" if colon else host
