"""The entry package of the installed program.

In the tree the parts (``api``, ``conductor`` …) are top-level packages beside this one; in a wheel
they lie inside it. Either way the folder that holds them is put first on this process's path, so
that they import each other by the same plain names.
"""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent

ROOT = _HERE if (_HERE / "common").is_dir() else _HERE.parent
"""The folder that holds the parts."""

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
