"""Check the parameters of a call against its schema, with the real server's messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.checks import Check
from simulator.errors import parameter_errors
from simulator.propstring import Format, problem
from simulator.vmschema import Option, option

UNDEFINED = "property is not defined in schema and the schema does not allow additional properties"


@dataclass(frozen=True)
class Param:
    """One parameter of a call."""

    check: Check | Format | None = None
    required: bool = False
    kind: str = "string"


@dataclass(frozen=True)
class Schema:
    """The parameters of a call; with `vm_options`, every option of a VM is one too."""

    params: Mapping[str, Param]
    vm_options: bool = False


def _complaint(name: str, value: str, check: Check | Format | None) -> str | None:
    if check is None:
        return None
    if isinstance(check, Format):
        return problem(name, value, check)
    return check(value)


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


def validate(schema: Schema, given: Mapping[str, Any]) -> dict[str, str]:
    """Return all parameters as text. Raises a 400 with one message per wrong parameter."""
    errors: dict[str, str] = {}
    found: dict[str, str] = {}
    for name, value in given.items():
        param: Param | Option | None = schema.params.get(name)
        if param is None and schema.vm_options:
            param = option(name)
        if param is None:
            errors[name] = UNDEFINED
            continue
        text, wrong = _as_text(value, param.kind)
        wrong = wrong or _complaint(name, text, param.check)
        if wrong:
            errors[name] = wrong
        found[name] = text
    for name, known in schema.params.items():
        if known.required and name not in given:
            errors[name] = "property is missing and it is not optional"
    if errors:
        raise parameter_errors(errors)
    return found
