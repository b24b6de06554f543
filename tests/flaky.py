"""Which tests failed and passed on their second try: ``python -m tests.flaky FIRST SECOND``.

Both files are what pytest printed. A name that ``tests/flaky.md`` doesn't have is a new one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

KNOWN = Path(__file__).with_suffix(".md")
NEW = " (not in tests/flaky.md)"
#: a line of pytest's summary: an ID may have spaces in its parameters, and a message follows it
_FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)


def failed(printed: str) -> list[str]:
    """Return the IDs of the tests that failed, as pytest printed them."""
    return list(dict.fromkeys(_FAILED.findall(printed)))


def flaky(first: str, second: str, known: str) -> Iterator[str]:
    """Yield the IDs of those that failed only in the first run, and which of them are new."""
    again = set(failed(second))
    for name in failed(first):
        if name not in again:
            names = (name.partition("[")[0], f"{name.partition('::')[0]}`")
            yield name if any(f"| `{one}" in known for one in names) else f"{name}{NEW}"


def main(paths: list[str]) -> None:
    """Print them."""
    first, second = (Path(one).read_text(encoding="utf-8", errors="replace") for one in paths)
    for line in flaky(first, second, KNOWN.read_text(encoding="utf-8")):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
