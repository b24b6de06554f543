"""Configuration and policy files."""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from shlex import quote
from typing import Any

from oslo_config import cfg

from common.findings import Finding, Level

#: a rule that another one refers to
_NAMED = re.compile(r"\brule:([\w:-]+)")
#: what isn't itself in a pattern of sed
_SPECIAL = re.compile(r"[][\\.*^$+?(){}|/]")
_ESCAPED = r"\\\g<0>"
#: rules that a finding names
_MOST = 5


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
                (f"chmod o-rwx {quote(str(path))}",),
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
        text = path.read_text(encoding="utf-8")
        rules = yaml.safe_load(text) or {}
        if not isinstance(rules, dict):
            raise ValueError("it is no mapping of rules")
    except (OSError, ValueError, yaml.YAMLError) as error:
        yield Finding(
            "policy_broken",
            Level.BROKEN,
            str(path),
            f"It can't be read: {str(error).splitlines()[0]}.",
            "The APIs keep their last rules, and don't start again.",
            (f"python3 -m yaml {quote(str(path))}",),
        )
        return
    known = sample.policy_names()
    yield from _rules(path, text, rules, known)
    unknown = sorted(set(map(str, rules)) - known - _named(list(rules.values())))[:_MOST]
    if unknown:
        yield Finding(
            "policy_unknown",
            Level.WARNING,
            str(path),
            f"No API has the rules {', '.join(unknown)}.",
            "What they were to allow or forbid is decided by the defaults.",
            tuple(_without(path, text, rules, name) for name in unknown),
        )


def _rules(path: Path, text: str, rules: Mapping[Any, Any], known: Set[str]) -> Iterator[Finding]:
    """Yield rules that forbid all, as nobody can read them or has what they name, or allow all."""
    known = known | set(map(str, rules))
    for name, rule in rules.items():
        if not rule:
            yield Finding(
                "policy_rule_empty",
                Level.WARNING,
                str(path),
                f"The rule {name} is empty.",
                "Everybody is allowed what it is about. Where that is meant, '@' says so.",
                (_without(path, text, rules, str(name)),),
            )
        elif _unreadable(rule) or _named(rule) - known:
            yield Finding(
                "policy_rule_wrong",
                Level.BROKEN,
                str(path),
                f"The rule {name} can't be followed: {rule}.",
                "Nobody is allowed what it is about.",
                (_without(path, text, rules, str(name)),),
            )


def _named(rule: Any) -> set[str]:
    """Return the rules that one refers to."""
    return set(_NAMED.findall(str(rule)))


def _unreadable(rule: Any) -> bool:
    """Return whether a rule is none, by the parser that the APIs use."""
    from oslo_policy import _checks, _parser

    parser = logging.getLogger(_parser.__name__)
    before, parser.disabled = parser.disabled, True
    try:
        parsed = _parser.parse_rule(rule)
    except TypeError:
        return True
    finally:
        parser.disabled = before
    return isinstance(parsed, _checks.FalseCheck) and str(rule).strip() != "!"


def _without(path: Path, text: str, rules: Mapping[Any, Any], name: str) -> str:
    """Return a command that removes a rule, or one to show it if the rule spans several lines."""
    import yaml

    # a quote may be before and behind it
    pattern = f"^.?{_SPECIAL.sub(_ESCAPED, name)}.? *:( |$)"
    left = "\n".join(line for line in text.splitlines() if not re.search(pattern, line))
    try:
        rest = yaml.safe_load(left) or {}
    except yaml.YAMLError:
        rest = None
    if rest == {key: rule for key, rule in rules.items() if str(key) != name}:
        return f"sed -E -i {quote(f'/{pattern}/d')} {quote(str(path))}"
    return f"grep -nF -e {quote(name)} {quote(str(path))}"
