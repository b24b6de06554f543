"""Whether a database can be used, by the revision of its schema. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

_REMEDY = "run 'micronova db upgrade'"
#: what the commits before the first release called their revisions
_BEFORE_THE_FIRST_RELEASE = re.compile(r"e?[0-9]{4}(_\w+)?")


def refusal(found: str | None, needed: str, known: Collection[str]) -> str | None:
    """Return why a database at ``found`` can't be upgraded, or None; continues a sentence."""
    if found is None or found in known:
        return None
    if _BEFORE_THE_FIRST_RELEASE.fullmatch(found):
        return (
            f"is at revision {found}, of before the first release, and can't be upgraded:"
            " begin with an empty one"
        )
    return f"is at revision {found}, which is newer than this release ({needed})"


def problem(found: str | None, needed: str, known: Collection[str]) -> str | None:
    """Return why a database at ``found`` can't be used, or None; continues a sentence."""
    if found == needed:
        return None
    if found is None:
        return f"is empty: {_REMEDY}"
    outdated = f"is at revision {found}, this release needs {needed}: {_REMEDY}"
    return refusal(found, needed, known) or outdated
