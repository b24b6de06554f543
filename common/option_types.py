"""Types of options whose text has a form of its own: checked when the configuration is read."""

from __future__ import annotations

from collections.abc import Callable

from oslo_config import types

from common.errors import MicronovaError


class Form(types.ConfigType):
    """A text that ``parse`` understands; the option's value is still the text.

    ``parse`` raises ValueError, or an error of ours, with the reason.
    """

    def __init__(self, parse: Callable[[str], object], type_name: str = "string value") -> None:
        super().__init__(type_name=type_name)
        self._parse = parse

    def __call__(self, value: object) -> str:
        """Return the text. Raises ValueError."""
        text = str(value)
        try:
            self._parse(text)
        except MicronovaError as error:
            raise ValueError(error.message) from error
        return text

    def _formatter(self, value: object) -> str:
        return str(value)

    def __repr__(self) -> str:
        return "Form"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and self._parse == other._parse

    __hash__ = None  # type: ignore[assignment]
