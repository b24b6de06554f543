"""Report wrong usage: the reason first, then the usage."""

from __future__ import annotations

import argparse
import functools
import sys
from typing import NoReturn


def reason_first(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Make the parser print the error before its usage; return it."""
    parser.error = functools.partial(_fail, parser)  # type: ignore[method-assign]
    return parser


def _fail(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    sys.stderr.write(f"{parser.prog}: {message}\n\n")
    parser.print_usage(sys.stderr)
    parser.exit(2)
