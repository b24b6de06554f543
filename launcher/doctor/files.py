"""Configuration and policy files."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from oslo_config import cfg

from common.findings import Finding, Level


def readable_by_others(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield configuration files that anybody on this machine can read: they have passwords."""
    for name in conf.config_file or ():
        path = Path(name)
        if path.is_file() and path.stat().st_mode & stat.S_IROTH:
            yield Finding(
                "file_readable",
                Level.WARNING,
                str(path),
                "Everybody on this machine can read it.",
                "It has the passwords of databases, bus and Keystone.",
                (f"chmod o-rwx {path}",),
            )


def policies(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield policy files that can't be read, and rules that no API has."""
    import yaml

    from launcher import sample
    from web import policy

    policy.register(conf)
    named = conf.find_file(conf.oslo_policy.policy_file)
    if named is None:
        return
    path = Path(named)
    try:
        rules = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        if not isinstance(rules, dict):
            raise ValueError("it is no mapping of rules")
    except (OSError, ValueError, yaml.YAMLError) as error:
        yield Finding(
            "policy_broken",
            Level.BROKEN,
            str(path),
            f"It can't be read: {str(error).splitlines()[0]}.",
            "The APIs keep their last rules, and don't start again.",
        )
        return
    unknown = sorted(set(map(str, rules)) - sample.policy_names())
    if unknown:
        yield Finding(
            "policy_unknown",
            Level.WARNING,
            str(path),
            f"No API has the rules {', '.join(unknown[:5])}.",
            "What they were to allow or forbid is decided by the defaults.",
        )
