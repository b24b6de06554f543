"""Write messages as JSON text, and rebuild dataclasses from it by their type hints."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import orjson

T = TypeVar("T")


def dumps(value: object) -> str:
    """Return the JSON text of dataclasses, enums, datetimes and plain values."""
    return orjson.dumps(value).decode()


def loads(text: str | bytes) -> Any:
    """Return the plain values of JSON text."""
    return orjson.loads(text)


def load(cls: type[T], data: Any) -> T:
    """Rebuild a dataclass from plain values.

    Unknown keys are ignored and missing ones take the field's default, so that two versions can
    talk during a rolling upgrade.
    """
    return typing.cast(T, _loader(typing.cast(Hashable, cls))(data))


_Load = Callable[[Any], Any]


def _same(data: Any) -> Any:
    return data


@functools.cache
def _loader(hint: Hashable) -> _Load:
    origin = typing.get_origin(hint)
    args = typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _optional(args)
    if origin is tuple:
        inner = _loader(args[0])
        return lambda data: tuple(inner(item) for item in data)
    if origin is list:
        inner = _loader(args[0])
        return lambda data: [inner(item) for item in data]
    if origin in (dict, Mapping) or (origin and issubclass(origin, Mapping)):
        inner = _loader(args[1])
        return lambda data: {key: inner(item) for key, item in data.items()}
    if isinstance(hint, type):
        return _class_loader(hint)
    return _same


def _optional(args: tuple[Any, ...]) -> _Load:
    """Return a loader: ``X | None`` is rebuilt as X; wider unions stay plain values."""
    rest = [arg for arg in args if arg is not type(None)]
    if len(rest) != 1:
        return _same
    inner = _loader(rest[0])
    return lambda data: None if data is None else inner(data)


def _class_loader(cls: type) -> _Load:
    if issubclass(cls, Tagged):
        return _family_loader(cls)
    if dataclasses.is_dataclass(cls):
        return _dataclass_loader(cls)
    if issubclass(cls, enum.Enum):
        return cls
    if issubclass(cls, datetime.datetime):
        return lambda data: data if isinstance(data, cls) else cls.fromisoformat(data)
    return _same


@dataclasses.dataclass(frozen=True)
class Tagged:
    """Base of a family of dataclasses: loaded as the base, a value is of the class that wrote it.

    A family is one subclass of this one with its own subclasses, all in one module.
    """

    kind: str = dataclasses.field(init=False, default="", kw_only=True, repr=False)
    """The name of its class."""

    def __post_init__(self) -> None:
        """Note the class."""
        object.__setattr__(self, "kind", type(self).__name__)


def _family_loader(cls: type[Tagged]) -> _Load:
    """Return a loader that picks the class by ``kind``; ValueError: there is none of that name."""
    loaders = {one.__name__: _dataclass_loader(one) for one in family(cls)}

    def load_member(data: Any) -> Any:
        found = loaders.get(data.get("kind", cls.__name__))
        if found is None:
            raise ValueError(f"{data['kind']} is no {cls.__name__} of this release")
        return found(data)

    return load_member


def family(cls: type[Tagged]) -> tuple[type[Tagged], ...]:
    """Return a class and all of its subclasses."""
    return (cls, *(member for one in cls.__subclasses__() for member in family(one)))


def _dataclass_loader(cls: type) -> _Load:
    hints = typing.get_type_hints(cls)
    loaders = {
        field.name: _loader(hints[field.name]) for field in dataclasses.fields(cls) if field.init
    }

    def load_fields(data: Any) -> Any:
        return cls(**{key: loaders[key](item) for key, item in data.items() if key in loaders})

    return load_fields
