"""Report wrong usage: the reason first, with the option that may be meant, then the usage."""

from __future__ import annotations

import argparse
import difflib
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn


def reason_first(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Make the parser print the error before its usage; return it."""
    given: list[str] = []
    parse = parser.parse_known_args

    def noted(args: Sequence[str] | None = None, namespace: Any = None) -> Any:
        given[:] = sys.argv[1:] if args is None else args
        return parse(args, namespace)

    parser.parse_known_args = noted  # type: ignore[method-assign, assignment]
    parser.error = functools.partial(_fail, parser, given)  # type: ignore[method-assign]
    return parser


def _fail(parser: argparse.ArgumentParser, given: Sequence[str], message: str) -> NoReturn:
    sys.stderr.write(f"{parser.prog}: {message}\n")
    for line in mistyped(parser, given):
        sys.stderr.write(f"{line}\n")
    sys.stderr.write("\n")
    parser.print_usage(sys.stderr)
    parser.exit(2)


def mistyped(parser: argparse.ArgumentParser, given: Sequence[str]) -> Iterator[str]:
    """Yield what may be meant by each option that the parser doesn't have."""
    known = [one for action in parser._actions for one in action.option_strings]
    for word in given:
        option = word.partition("=")[0]
        if not option.startswith("--") or any(one.startswith(option) for one in known):
            continue
        close = difflib.get_close_matches(option, known, 1)
        if close:
            yield f"There is no option {option}. Did you mean {close[0]}?"
