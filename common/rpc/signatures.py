"""Message classes by a method's type hints: what of its arguments and its answer crosses RPC.

Sender and receiver may be of two releases. Fields and arguments that the receiver doesn't know are
left out, and missing ones have their defaults. What can't be read, such as a new class of messages
or a new value of an enumeration, is refused as Unavailable; two marks of hints say otherwise.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from common import codec
from common.errors import Unavailable
from common.log import logger
from common.release import VERSION

LOG = logger(__name__)


class Unreadable(enum.Enum):
    """A mark of a hint: what becomes of that which this release can't read."""

    LEFT_OUT = enum.auto()  #: of a list: the others are read
    AS_BASE = enum.auto()  #: of a family: its base is read, whose fields all members have


def messages(method: Callable[..., Any]) -> Mapping[str, Any]:
    """Return {parameter: type hint}, of those that hold message classes; ``return`` is one."""
    return {
        name: hint
        for name, hint in typing.get_type_hints(method, include_extras=True).items()
        if name != "ctxt" and _holds_message(hint)
    }


def _holds_message(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or any(map(_holds_message, typing.get_args(hint)))


#: by the plain function: the same for every caller and endpoint
_messages = functools.cache(messages)


def load(hint: Any, data: Any) -> Any:
    """Rebuild what a hint names from plain values. Raises Unavailable where it can't be read."""
    try:
        return _load(hint, data)
    except ValueError as error:
        raise Unavailable(f"Release {VERSION} can't read a message: {error}") from None


def _load(hint: Any, data: Any) -> Any:
    if typing.get_origin(hint) is not Annotated:
        return codec.load(hint, data)
    inner, mark = typing.get_args(hint)
    if mark is Unreadable.AS_BASE:
        return _with_base(inner, data)
    (item,) = typing.get_args(inner)
    try:
        return codec.load(inner, data)
    except ValueError:
        return [loaded for one in data for loaded in _readable(item, one)]


def _with_base(family: type[codec.Tagged], data: Any) -> Any:
    try:
        return codec.load(family, data)
    except ValueError as error:
        LOG.warning("A message is read in part: %s", error)
        return codec.load(family, {**data, "kind": family.__name__})


def _readable(item: Any, data: Any) -> list[Any]:
    try:
        return [codec.load(item, data)]
    except ValueError as error:
        LOG.warning("A part of a message is left out: %s", error)
        return []


def load_answer(method: Callable[..., Any], answer: Any) -> Any:
    """Rebuild a method's answer from plain values. Raises Unavailable where it can't be read."""
    hint = _messages(method).get("return")
    return answer if hint is None else load(hint, answer)


@functools.cache
def answer_of(method: Callable[..., Any]) -> Any:
    """Return the type of a method's answer."""
    return typing.get_type_hints(method).get("return")


class TypedEndpoint:
    """An endpoint whose methods get message classes where plain values came over RPC."""

    def __init__(self, endpoint: object) -> None:
        self._endpoint = endpoint

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._endpoint, name)
        typed = _loading(found) if callable(found) else found
        setattr(self, name, typed)
        return typed


def _loading(method: Callable[..., Any]) -> Callable[..., Any]:
    hints = {name: hint for name, hint in messages(method).items() if name != "return"}
    known = inspect.signature(method).parameters

    @functools.wraps(method)
    def loaded(ctxt: Any, **values: Any) -> Any:
        read = {
            name: load(hints[name], value) if name in hints else value
            for name, value in values.items()
            if name in known
        }
        return method(ctxt, **read)

    return loaded
