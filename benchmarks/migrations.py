"""The CPU time that the compute API takes to list 10,000 migrations: all of them, and by pages.

In one process, on SQLite, without network: ``python -m benchmarks.migrations``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ids
from common.process import garbage
from db import schema
from tests.fixtures import auth
from tests.fixtures.compute import ComputeApi
from tests.fixtures.listings import NOW

#: the last version that lists all at once, and one with pages
WHOLE, PAGES = "2.58", "2.104"


def _row(number: int) -> dict[str, Any]:
    moment = NOW + datetime.timedelta(seconds=number)
    return {
        "uuid": ids.named("migration", str(number)),
        "server_uuid": ids.named("server", str(number % 1000)),
        "project_id": f"project-{number % 10}",
        "user_id": "demo",
        "type": "resize",
        "status": "confirmed",
        "source_host": "pve1",
        "source_node": "pve1",
        "dest_host": "pve1",
        "dest_node": "pve1",
        "old_flavor": {"id": "m1.small", "vcpus": 1, "memory_mib": 2048, "disk_gib": 20},
        "new_flavor": {"id": "m1.large", "vcpus": 4, "memory_mib": 8192, "disk_gib": 40},
        "created_at": moment,
        "updated_at": moment,
    }


def _milliseconds(api: ComputeApi, query: str, version: str, runs: int) -> dict[str, float]:
    took = []
    for _ in range(runs):
        begun = time.process_time()
        answer = api.get(f"/os-migrations{query}", token=auth.ADMIN, version=version)
        took.append((time.process_time() - begun) * 1000)
        if answer.status_code != 200:
            raise SystemExit(answer.text)
    return {
        "median_cpu_ms": round(statistics.median(took), 1),
        "worst_cpu_ms": round(max(took), 1),
    }


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        api = ComputeApi(f"sqlite:///{Path(folder) / 'cloud.sqlite'}")
        with api.writer.begin() as connection:
            connection.execute(schema.migrations.insert(), [_row(n) for n in range(asked.rows)])
        garbage.settle()  # as every service does once it serves
        middle = ids.named("migration", str(asked.rows // 2))
        found = {
            "rows": asked.rows,
            "all": _milliseconds(api, "", WHOLE, asked.runs),
            "first_page_of_1000": _milliseconds(api, "", PAGES, asked.runs),
            "page_in_the_middle": _milliseconds(api, f"?marker={middle}", PAGES, asked.runs),
            "page_of_a_project": _milliseconds(
                api, "?project_id=project-3&limit=100", PAGES, asked.runs
            ),
        }
        api.close()
    json.dump(found, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
