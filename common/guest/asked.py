"""Reads the same setting from a flavor's extra specs and an image's properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


class CannotError(ValueError):
    """What is asked for is impossible or invalid; the message says what and why."""


@dataclass(frozen=True)
class Asked:
    """Both sources: ``hw:cpu_policy`` of a flavor is ``hw_cpu_policy`` of an image."""

    extra_specs: Mapping[str, str]
    image_properties: Mapping[str, str]

    def flavor_first(self, spec: str, image_property: str) -> str:
        """Return the flavor's value, else the image's, in lower case; empty: neither asks."""
        text = self.extra_specs.get(spec) or self.image_properties.get(image_property) or ""
        return str(text).strip().lower()

    def agreed(self, spec: str, image_property: str) -> str:
        """Return the flavor's or the image's value. Raises CannotError if both ask and differ."""
        flavor = str(self.extra_specs.get(spec, "")).strip().lower()
        image = str(self.image_properties.get(image_property, "")).strip().lower()
        if flavor and image and flavor != image:
            raise CannotError(
                f"the flavor asks {spec}={flavor}, the image {image_property}={image}"
            )
        return flavor or image

    def number(self, spec: str, image_property: str) -> int | None:
        """Return a number over 0, the flavor's first; None: neither asks. Raises CannotError."""
        text = self.flavor_first(spec, image_property)
        if not text:
            return None
        if not (text.isascii() and text.isdigit()) or not int(text):
            raise CannotError(f"{spec or image_property}={text} is no number over 0")
        return int(text)

    def flag(self, spec: str, image_property: str) -> bool:
        """Return whether it is asked for. Raises CannotError."""
        text = self.agreed(spec, image_property)
        if not text:
            return False
        # Here, as few ask for it: its patterns for secrets take 50 ms to compile.
        from oslo_utils import strutils

        try:
            return bool(strutils.bool_from_string(text, strict=True))
        except ValueError as error:
            raise CannotError(
                f"{spec or image_property}={text} is neither true nor false"
            ) from error

    def among(self, choices: Mapping[str, str], spec: str, image_property: str) -> str:
        """Return what the value stands for; that of the empty value if neither asks.

        Raises CannotError for others.
        """
        text = self.agreed(spec, image_property)
        if text not in choices:
            can = ", ".join(choice for choice in choices if choice)
            raise CannotError(f"{spec or image_property}={text} can't be had, only {can}")
        return choices[text]
