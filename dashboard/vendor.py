"""What others wrote and the dashboard ships, unchanged: packages of npm, checked by a test."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Vendored:
    """One file of a package, unchanged."""

    path: str
    """Below `static/vendor/`."""
    package: str
    version: str
    licence: str
    sha256: str


FILES: tuple[Vendored, ...] = (
    Vendored(
        "htmx/htmx.min.js",
        "htmx.org",
        "2.0.11",
        "0BSD",
        "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717",
    ),
)
