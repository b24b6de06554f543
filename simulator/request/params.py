"""Check the parameters of a call against the API schema, with the real server's messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from simulator.errors import parameter_errors
from simulator.request import checks
from simulator.request.apischema import Rule, Rules
from simulator.request.formats import FORMATS

UNDEFINED = "property is not defined in schema and the schema does not allow additional properties"
MISSING = "property is missing and it is not optional"


def validate(rules: Rules, given: Mapping[str, Any]) -> dict[str, str]:
    """Return all parameters as text. Raises a 400 with one message per wrong parameter."""
    errors: dict[str, str] = {}
    found: dict[str, str] = {}
    for name, value in given.items():
        rule = rules.get(name)
        if rule is None:
            errors[name] = UNDEFINED
            continue
        text, wrong = _as_text(value, rule["type"])
        wrong = wrong or complaint(name, text, rule)
        if wrong:
            errors[name] = wrong
        found[name] = text
    for name, rule in rules.items():
        if name not in given and not rule.get("optional"):
            errors[name] = MISSING
    if errors:
        raise parameter_errors(errors)
    return found


def _as_text(value: Any, kind: str) -> tuple[str, str | None]:
    if isinstance(value, str):
        return value, None
    if isinstance(value, bool):
        if kind == "boolean":
            return str(int(value)), None
        return "", f"type check ('{kind}') failed - got JSON::PP::Boolean"
    if isinstance(value, int | float):
        return str(value), None
    if isinstance(value, list):
        return "\0".join(str(item) for item in value), None
    return "", f"type check ('{kind}') failed"


def complaint(name: str, value: str, rule: Rule) -> str | None:
    """Return Proxmox VE's error message for a value, or None."""
    return (
        checks.of_type(rule["type"], value)
        or _format_complaint(name, value, rule.get("format"))
        or _pattern_complaint(value, rule.get("pattern"))
        or checks.length(value, rule.get("maxLength"), rule.get("minLength"))
        or checks.bounds(value, rule.get("minimum"), rule.get("maximum"))
        or checks.one_of(value, rule.get("enum"))
    )


def _format_complaint(name: str, value: str, form: str | Rules | None) -> str | None:
    known = FORMATS.get(form) if isinstance(form, str) else form
    if known is None:
        return None
    return property_problem(name, value, known) if isinstance(known, Mapping) else known(value)


def _pattern_complaint(value: str, pattern: str | None) -> str | None:
    if pattern is None or _compiled(pattern).search(value):
        return None
    return "value does not match the regex pattern"


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a Perl expression as the schema prints it, for the whole value."""
    return re.compile(f"^(?:{pattern.replace('(?^', '(?')})$")


def property_problem(name: str, text: str, rules: Rules) -> str | None:
    """Return Proxmox VE's error message for a property string, or None."""
    found, complaints = _properties(text, rules)
    for key, value in found.items():
        rule = rules.get(key)
        reason = UNDEFINED if rule is None else complaint(f"{name}.{key}", value, rule)
        if reason:
            complaints.append(f"{name}.{key}: {reason}\n")
    complaints += [
        f"{name}.{key}: {MISSING}\n"
        for key, rule in rules.items()
        if "alias" not in rule and not rule.get("optional") and key not in found
    ]
    return "invalid format - format error\n" + "".join(complaints) if complaints else None


def _properties(text: str, rules: Rules) -> tuple[dict[str, str], list[str]]:
    """Return the properties by their own names, and messages about parts without a key."""
    default = next((key for key, rule in rules.items() if rule.get("default_key")), "")
    found: dict[str, str] = {}
    complaints: list[str] = []
    for part in filter(str.strip, text.split(",")):
        key, equals, value = part.partition("=")
        key = key.strip()
        if not equals and (not default or default in found):
            complaints.append(
                "invalid format - value without key, but schema does not define a default key\n"
            )
            continue
        if not equals:
            key, value = default, part
        rule = rules.get(key, {})
        if "keyAlias" in rule:
            # The key of `virtio=MAC` is itself the value of another property.
            found[rule["keyAlias"]] = key
        found[rule.get("alias", key)] = value
    return found, complaints
