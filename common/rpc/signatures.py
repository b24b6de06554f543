"""Message classes by a method's type hints: what of its arguments and its answer crosses RPC."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable, Mapping
from typing import Any

from common import codec


def messages(method: Callable[..., Any]) -> Mapping[str, Any]:
    """Return {parameter: type hint}, of those that hold message classes; ``return`` is one."""
    return {
        name: hint
        for name, hint in typing.get_type_hints(method).items()
        if name != "ctxt" and _holds_message(hint)
    }


def _holds_message(hint: Any) -> bool:
    return dataclasses.is_dataclass(hint) or any(map(_holds_message, typing.get_args(hint)))


#: by the plain function: the same for every caller and endpoint
_messages = functools.cache(messages)


def load_answer(method: Callable[..., Any], answer: Any) -> Any:
    """Rebuild a method's answer from plain values."""
    hint = _messages(method).get("return")
    return answer if hint is None else codec.load(hint, answer)


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
    if not hints:
        return method

    @functools.wraps(method)
    def load(*args: Any, **values: Any) -> Any:
        loaded = {name: codec.load(hints[name], values[name]) for name in hints if name in values}
        return method(*args, **(values | loaded))

    return load
