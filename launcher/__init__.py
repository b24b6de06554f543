"""The composition root: configuration, wiring, services as processes."""

from __future__ import annotations

import os
import sys

# keystoneauth1 would import it, and WebOb and Paste with it, to trace requests, which nobody does.
sys.modules.setdefault("osprofiler", None)  # type: ignore[arg-type]
# numpy is for tables of integers here. OpenBLAS would start a thread for each core at the import,
# for linear algebra, and a process that forks is to have one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
