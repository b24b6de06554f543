"""How refusals of bodies and queries are worded, and the formats of Nova's own."""

from __future__ import annotations

import functools
import unicodedata

from web import wording
from web.schemas import FORMATS, NUMBERS_IN_STRINGS, Formats, Refusal, Words

NAME_RULE = "printable characters. Can not start or end with whitespace."
SPACED_NAME_RULE = "printable characters with at least one non space character"
AZ_NAME_RULE = "printable characters except :. Can not start or end with whitespace."


def _printable(char: str) -> bool:
    category = unicodedata.category(char)
    return category[0] != "C" and (category[0] != "Z" or category == "Zs")


def is_name(text: str) -> bool:
    """Printable, and no space at the ends."""
    return text == text.strip() and all(map(_printable, text))


NOVA_FORMATS: Formats = {
    **FORMATS,
    "name": is_name,
    "spaced_name": lambda text: bool(text.strip()) and is_name(text.strip(" ")),
    "az_name": lambda text: ":" not in text and is_name(text),
    "description": lambda text: all(map(_printable, text)),
}

_RULES = {"name": NAME_RULE, "spaced_name": SPACED_NAME_RULE, "az_name": AZ_NAME_RULE}


def _sentence(refusal: Refusal, *, query: bool) -> str:
    rule = _RULES.get(str(refusal.validator_value)) if refusal.validator == "format" else None
    if rule is not None:
        return f"An invalid 'name' value was provided. The name must be: {rule}"
    said = wording.sentence(refusal)
    if not refusal.path:
        return said
    where = refusal.path[0] if query else refusal.path[-1]
    kind = "query parameters" if query else "field/attribute"
    value = ""
    if wording.is_shown(refusal.absolute_path, refusal.instance):
        value = f"Value: {refusal.instance}. "
    return f"Invalid input for {kind} {where}. {value}{said}"


def of_body(refusal: Refusal) -> str:
    """Return what is wrong with a body: the field, its value, and why; Cinder says it so, too."""
    return _sentence(refusal, query=False)


BODY = Words(
    sentence=of_body,
    standard=NUMBERS_IN_STRINGS,
    formats=NOVA_FORMATS,
)
#: of queries, which are validated as lists of values
QUERY = Words(
    sentence=functools.partial(_sentence, query=True),
    standard=NUMBERS_IN_STRINGS,
    formats=NOVA_FORMATS,
)
