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
    Vendored(
        "uplot/uPlot.iife.min.js",
        "uplot",
        "1.6.32",
        "MIT",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    ),
    Vendored(
        "uplot/uPlot.min.css",
        "uplot",
        "1.6.32",
        "MIT",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    ),
)
