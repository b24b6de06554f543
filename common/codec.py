"""Write messages as JSON text, and rebuild dataclasses from it by their type hints."""

from __future__ import annotations

import dataclasses
import functools
import threading
import typing
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import msgspec
import orjson

T = TypeVar("T")


def dumps(value: object) -> str:
    """Return the JSON text of dataclasses, enums, datetimes and plain values."""
    return orjson.dumps(value).decode()


def loads(text: str | bytes) -> Any:
    """Return the plain values of JSON text."""
    return orjson.loads(text)


def load(cls: type[T], data: Any) -> T:
    """Rebuild a dataclass from plain values; in a family (see ``Tagged``), the class of ``kind``.

    Unknown keys are ignored and missing ones take the field's default, so that two versions can
    talk during a rolling upgrade. Raises ValueError for values of other types, and for a class of
    the family that this release doesn't have.
    """
    if isinstance(cls, type) and issubclass(cls, Tagged):
        return typing.cast(T, _load_member(cls, data))
    return _convert(cls, data)


_KNOWN: set[Any] = set()
_LEARNING = threading.Lock()


def _convert(cls: type[T], data: Any) -> T:
    """Convert plain values by msgspec, which learns the fields of each class at its first use.

    One thread at a time does that: msgspec 0.22 notes a class (its `__msgspec_cache__`) before it
    has read its fields, and another thread that uses it then crashes the process.
    """
    if cls not in _KNOWN:
        with _LEARNING:
            msgspec.json.Decoder(cls, dec_hook=_load_nested)
            _KNOWN.add(cls)
    return msgspec.convert(data, cls, dec_hook=_load_nested)


if TYPE_CHECKING:
    Member = Annotated[T, "any member of the family"]
    _Field = object
else:

    class Member(Generic[T]):
        """The type of a field that holds any member of a family; for mypy the family itself."""

    _Field = Member


@dataclasses.dataclass(frozen=True)
class Tagged(_Field):
    """Base of a family of dataclasses: loaded as the base, a value is of the class that wrote it.

    A family is one subclass of this one with its own subclasses, all in one module.
    """

    kind: str = dataclasses.field(init=False, default="", kw_only=True, repr=False)
    """The name of its class."""

    def __post_init__(self) -> None:
        """Note the class."""
        object.__setattr__(self, "kind", type(self).__name__)


@functools.cache
def _members(cls: Any) -> Mapping[str, type[Tagged]]:
    return {one.__name__: one for one in family(cls)}


def _load_member(cls: type[Tagged], data: Any) -> Tagged:
    return _convert(_member(cls, data), data)


def _load_nested(hint: Any, data: Any) -> Tagged:
    """Load a field of type ``Member``, as msgspec asks for it."""
    (family_,) = typing.get_args(hint)
    return _load_member(typing.get_origin(family_) or family_, data)


def _member(cls: type[Tagged], data: Any) -> type[Tagged]:
    kind = data.get("kind", cls.__name__)
    found = _members(typing.cast(Hashable, cls)).get(kind)
    if found is None:
        raise ValueError(f"{kind} is no {cls.__name__} of this release")
    return found


def named_by(cls: Any, fits: Callable[[Any], bool] = lambda _: True) -> Any:
    """Return the first type that fits of those which a class, or a base, names for its bases:
    ``int`` of ``A(Base[int])``.

    Raises TypeError where there is none.
    """
    for one in cls.__mro__:
        for generic in one.__dict__.get("__orig_bases__", ()):
            for named in typing.get_args(generic):
                if not isinstance(named, TypeVar) and fits(named):
                    return named
    raise TypeError(f"{cls.__name__} names no type")


def family(cls: type[Tagged]) -> tuple[type[Tagged], ...]:
    """Return a class and all of its subclasses."""
    return (cls, *(member for one in cls.__subclasses__() for member in family(one)))
