"""The composition root: configuration, wiring, services as processes."""

from __future__ import annotations

import os
import sys
import warnings

# keystoneauth1 would import it, and WebOb and Paste with it, to trace requests, which nobody does.
sys.modules.setdefault("osprofiler", None)  # type: ignore[arg-type]
# requests would import it, 1.5 MiB in every process, to guess encodings of texts that name none.
# What services ask each other for is JSON; without it such texts are read as UTF-8.
sys.modules.setdefault("charset_normalizer", None)  # type: ignore[arg-type]
warnings.filterwarnings("ignore", "Unable to find acceptable character detection")
# numpy is for tables of integers here. OpenBLAS would start a thread for each core at the import,
# for linear algebra, and a process that forks is to have one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
