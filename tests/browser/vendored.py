"""What others wrote and the tests use, unchanged: packages of npm."""

from __future__ import annotations

from pathlib import Path

from dashboard.vendor import Vendored

FOLDER = Path(__file__).parent / "vendor"
FILES = (
    Vendored(
        "axe-core/axe.min.js",
        "axe-core",
        "4.14.1",
        "MPL-2.0",
        "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
    ),
)
