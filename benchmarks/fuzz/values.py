"""Values that break things, and bodies made of schemas and of them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

UUID = "11111111-2222-4333-8444-555555555555"

TEXTS = (
    *(
        "",
        " ",
        "\0",
        "a\0b",
        "\n",
        "\r\n",
        "\t",
        "\x7f",
        "\u202e",
        "\ufeff",
        "\U0001f600",
        "é" * 300,
    ),
    *("a" * 256, "a" * 5000, "%", "%00", "%s%n", "${x}", "{0}", "{", "}", "'", '"', "'; DROP--"),
    *("../../etc/passwd", "..%2f..", "/", "//", "\\", "\\x", ".", "..", "*", "?", "[", "(", "a**"),
    *("null", "None", "true", "False", "NaN", "Infinity", "-0", "0", "1", "-1", "1e309", "0x10"),
    *("9" * 20, "9" * 4400, "2147483648", "9223372036854775808", "\u0661\u0662", "²", "１"),
    *(UUID, UUID.upper(), UUID.replace("-", ""), "{" + UUID + "}", "urn:uuid:" + UUID, UUID[:-1]),
    *("2026-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"),
    *("2026-13-45", "2026-02-30T25:61:61Z", "1" * 50 + "-01-01", "-1", "today", "T", "Z"),
    *(
        "a:b",
        "gt:x",
        "in:a,b",
        'in:"',
        "in:",
        "!x",
        "a,b,,c",
        "a=b",
        "key=",
        "=",
        ":",
        ";",
        "&",
        "#",
    ),
    *("10.0.0.1", "10.0.0.0/8", "::", "::ffff:1.2.3.4", "fe80::1%eth0", "999.1.1.1", "1.2.3.4/99"),
    *(
        "VCPU:1",
        "VCPU:0",
        "VCPU:" + "9" * 30,
        "VCPU:" + "9" * 4400,
        "VCPU",
        "CUSTOM_A",
        "HW_CPU_X86_VMX",
    ),
    *(
        "(a?){60}a{60}c",
        "a{99999999999}",
        "(?P<a>",
        "[[:alpha:]]",
        "(a+)+$",
        ".*.*.*c",
        "\\1",
        "(?R)",
    ),
    *("javascript:alert(1)", "http://x/", "<script>", "latest", "2.1", "nova:", "az:host:node"),
)
NUMBERS = (
    *(0, 1, -1, 2, 255, 256, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**63 - 1),
    *(
        2**63,
        2**64,
        -(2**63),
        -(2**63) - 1,
        10**30,
        0.5,
        -0.0,
        1.0,
        1e15,
        1e18,
        1e30,
        1e308,
        5e-324,
    ),
)
CONSTANTS = (None, True, False)
#: values that would keep the cloud busy for hours
_BOUNDED = {"min_count": (0, -1, 1, 2, 10**10, 2**31), "max_count": (0, -1, 1, 2, 10**10, 2**31)}


def hostile(rng: random.Random, depth: int = 0) -> Any:
    """Return a value of any kind."""
    kind = rng.random()
    if kind < 0.45:
        return rng.choice(TEXTS)
    if kind < 0.7:
        return rng.choice(NUMBERS)
    if kind < 0.8 or depth > 3:
        return rng.choice(CONSTANTS)
    if kind < 0.9:
        return [hostile(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(TEXTS): hostile(rng, depth + 1) for _ in range(rng.randrange(4))}


def nested(rng: random.Random) -> Any:
    """Return a value of many levels."""
    value: Any = rng.choice((1, "x", None))
    arrays = rng.random() < 0.5
    for _ in range(rng.choice((10, 60, 64, 65, 130, 260, 300, 488, 600))):
        value = [value] if arrays else {"a": value}
    return value


def of_schema(rng: random.Random, schema: Any, known: Mapping[str, tuple[str, ...]]) -> Any:
    """Return a value that nearly fits a schema."""
    if not isinstance(schema, Mapping) or rng.random() < 0.03:
        return hostile(rng)
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            return of_schema(rng, rng.choice(schema[several]), known)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    kind = rng.choice(kinds) if isinstance(kinds, list) else kinds
    if kind == "object":
        return _object(rng, schema, known)
    if kind == "array":
        most = min(schema.get("maxItems", 3), 3)
        items = schema.get("items", {})
        return [of_schema(rng, items, known) for _ in range(rng.randint(min(1, most), most))]
    if kind in ("integer", "number"):
        low = int(schema.get("minimum", 0))
        return rng.choice((low, low + 1, int(schema.get("maximum", low + 2)), low - 1))
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "null":
        return None
    return _text(rng, schema, known)


def _text(
    rng: random.Random, schema: Mapping[str, Any], known: Mapping[str, tuple[str, ...]]
) -> str:
    if schema.get("format") == "uuid" or "0-9a-f" in str(schema.get("pattern", "")).lower():
        return rng.choice((UUID, *known.get("uuid", ())))
    every = [text for texts in known.values() for text in texts]
    return rng.choice(("a", "b-1", "1", "10", "true", "CUSTOM_A", "YQ==", *every[:40]))


def _object(rng: random.Random, schema: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    found: dict[str, Any] = {}
    needed = set(schema.get("required", ()))
    for name, part in schema.get("properties", {}).items():
        if name in needed or rng.random() < 0.35:
            values = known.get(name)
            found[name] = rng.choice(values) if values else of_schema(rng, part, known)
            if name in _BOUNDED:
                found[name] = rng.choice(_BOUNDED[name])
    others = schema.get("additionalProperties")
    named_by_users = [*schema.get("patternProperties", {}).values()]
    for part in [*named_by_users, others] if isinstance(others, Mapping) else named_by_users:
        for _ in range(rng.randrange(3)):
            name = rng.choice(("VCPU", "CUSTOM_A", "key", UUID, "A", *known.get("uuid", ())))
            found[name] = of_schema(rng, part, known)
    return found


def spoil(rng: random.Random, value: Any) -> Any:
    """Return a body with something in it replaced, added or taken away."""
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        value = _spoil_one(rng, value)
    return value


def _spoil_one(rng: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(sorted(value))
        how = rng.random()
        if how < 0.1:
            return {key: part for key, part in value.items() if key != name}
        if how < 0.2:
            return value | {rng.choice(TEXTS): hostile(rng)}
        if how < 0.25:
            return value | {name: nested(rng)}
        if name in _BOUNDED:
            return value
        return value | {name: _spoil_one(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        index = rng.randrange(len(value))
        return [*value[:index], _spoil_one(rng, value[index]), *value[index + 1 :]]
    return hostile(rng)


def text_of(rng: random.Random, value: Any) -> bytes:
    """Return the JSON of a body, or what only looks like it."""
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5)
    how = rng.random()
    if how > 0.2:
        return text.encode("utf-8", "surrogatepass")
    levels = rng.choice((65, 260, 900, 1100, 20_000))
    return rng.choice(
        (
            b"",
            b"{",
            b"null",
            b"[]",
            b'"text"',
            b"NaN",
            b"-",
            b"1e400",
            b"9" * 4400,
            b'{"a": "\\ud800"}',
            b'{"server": {}, "server": 1}',
            b"\xef\xbb\xbf" + text.encode(),
            b"\xff\xfe" + text.encode("utf-16-le", "surrogatepass"),
            text.encode("utf-8", "surrogatepass")[:-1],
            text.encode("utf-8", "surrogatepass") + b"}",
            text.replace('"a"', '"a": 1, "a"').encode("utf-8", "surrogatepass"),
            b"[" * levels + b"]" * levels,
            b'{"a":' * levels + b"1" + b"}" * levels,
            b'{"os-start": ' + b"[" * levels + b"]" * levels + b"}",
            b" " * 120_000,
            b'"' + b"x" * 200_000 + b'"',
            b"a=b&c=d",
        )
    )
