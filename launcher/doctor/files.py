"""Configuration and policy files."""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from oslo_config import cfg

from common.findings import Finding, Level

#: a rule that another one refers to
_NAMED = re.compile(r"\brule:([\w:-]+)")


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
            (f"python3 -m yaml {path}",),
        )
        return
    yield from _rules(path, rules)
    unknown = sorted(set(map(str, rules)) - sample.policy_names())
    if unknown:
        yield Finding(
            "policy_unknown",
            Level.WARNING,
            str(path),
            f"No API has the rules {', '.join(unknown[:5])}.",
            "What they were to allow or forbid is decided by the defaults.",
            (f"sed -i '/{unknown[0]}/d' {path}",),
        )


def _rules(path: Path, rules: Mapping[Any, Any]) -> Iterator[Finding]:
    """Yield rules that can't be read, or that name rules which nobody has: they forbid all."""
    from launcher import sample

    known = sample.policy_names() | set(map(str, rules))
    for name, text in rules.items():
        bad = _unreadable(str(text)) or sorted(set(_NAMED.findall(str(text))) - known)
        if bad:
            yield Finding(
                "policy_rule_wrong",
                Level.BROKEN,
                str(path),
                f"The rule {name} can't be followed: {text}.",
                "Nobody is allowed what it is about.",
                (f"sed -i '/{name}/d' {path}",),
            )


def _unreadable(text: str) -> bool:
    """Return whether a rule's text is none, by the parser that the APIs use."""
    from oslo_policy import _checks, _parser

    parser = logging.getLogger(_parser.__name__)
    before, parser.disabled = parser.disabled, True
    try:
        parsed = _parser.parse_rule(text)
    finally:
        parser.disabled = before
    return isinstance(parsed, _checks.FalseCheck) and text.strip() != "!"
