"""Views of a failure, for its owner and for operators."""

from __future__ import annotations

from typing import Any

from common import clock
from common.messages.reports import Category
from common.resources.states import ResourceType
from common.story.failure_words import owner_sentence
from db.records import FaultRecord

#: errors whose messages are for the owner: they name nothing outside the project
_OPEN = frozenset({Category.QUOTA_EXCEEDED})
_KNOWN = frozenset(one.value for one in Category)


def message(
    fault: FaultRecord,
    *,
    operator: bool,
    resource_type: str = ResourceType.SERVER,
) -> str:
    """The message of a failure. Only this decides who sees what: owners see no host names, no
    numbers of hosts, no versions, paths or tasks.
    """
    if operator:
        return fault.message
    if fault.owner_message:
        return fault.owner_message
    if fault.category not in _KNOWN:  # from a newer conductor
        return "The operation failed."
    category = Category(fault.category)
    return fault.message if category in _OPEN else owner_sentence(category, resource_type)


#: characters; Nova stores 255, and clients such as Heat prepend text of their own
LONGEST = 200


def brief(text: str) -> str:
    """Return whole sentences of a message, as many as a server's fault has room for."""
    if len(text) <= LONGEST:
        return text
    end = text.rfind(". ", 0, LONGEST)
    return text[: end + 1] if end > 0 else f"{text[: LONGEST - 1]}…"


def details(fault: FaultRecord) -> str:
    """Return all details of a failure as text, for operators."""
    lines = [f"Category: {fault.category}", f"Request ID: {fault.request_id}"]
    lines += [
        f"{word}: {value}"
        for word, value in (("Host", fault.host), ("Task", fault.upid), ("Remedy", fault.remedy))
        if value
    ]
    for word, values in (("Cleaned up", fault.cleaned), ("Left behind", fault.left)):
        lines += [f"{word}: {value}" for value in values]
    return "\n".join([*lines, *(f"Log: {line}" for line in fault.log_tail)])


def view(fault: FaultRecord, *, operator: bool) -> dict[str, Any]:
    """Return the `fault` of a server in ERROR."""
    shown: dict[str, Any] = {
        "code": fault.code,
        "created": clock.iso(fault.created_at),
        "message": brief(message(fault, operator=operator)),
    }
    if operator:
        shown["details"] = details(fault)
    return shown
