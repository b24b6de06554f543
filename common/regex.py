"""Regular expressions that clients send: checked, and matched in time linear in the text.

The engine is RE2. It tries no alternatives one after the other, so that no pattern takes for ever,
and it lets the other threads run while it matches. It knows neither look-around nor back
references.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import re2

from common.errors import Invalid

MOST_CHARACTERS = 255
#: bytes of memory for what a pattern is compiled to; compiling that much takes about a millisecond
_PROGRAM = 64 * 1024
#: bytes of memory to match with; with less than the program needs, a match is slower
_MATCHING = 512 * 1024
#: a number in braces that RE2 would take for literal text, as it is no valid repetition
_HUGE = re.compile(r"(?<!\\)\{(?:[0-9]*,)?[0-9]{5}")


def check(pattern: str) -> None:
    """Raise Invalid for what is no regular expression, or a too long or too large one."""
    if len(pattern) > MOST_CHARACTERS:
        raise Invalid(f"A regular expression may have {MOST_CHARACTERS} characters.")
    _compiled(pattern)


def finds(pattern: str, text: str) -> bool:
    """Return whether the pattern matches anywhere in the text. Raises Invalid as `check` does."""
    return _compiled(pattern).search(text) is not None


@functools.lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    if _HUGE.search(pattern):
        raise Invalid(f"The regular expression {pattern} repeats too often.")
    try:
        # What doesn't fit in little memory is refused at once; compiling it for more would hold
        # up every thread for seconds.
        re2.compile(pattern, _options(_PROGRAM))
        return re2.compile(pattern, _options(_MATCHING))
    except (re2.error, UnicodeEncodeError) as error:
        raise Invalid(f"{pattern} is no regular expression that can be searched for.") from error


def _options(memory: int) -> Any:
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    options.never_capture = True
    return options
