"""``python -m benchmarks.fuzz``: fifty thousand hostile requests, then an audit; prints JSON.

It starts an embedded cloud without a hypervisor. The same seed sends the same requests, as far as
IDs go that the cloud made. Exit code 1: an API answered 5xx or not at all, Keystone found its
database locked, or the audit found something.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.fuzz.campaign import Campaign
from tests.fixtures import null
from tests.functional.audits import Audits
from tests.functional.cloud import embedded_cloud


def report(count: int, seconds: float, seed: int, folder: Path) -> dict[str, Any]:
    """Run it; return what is printed."""
    began = time.monotonic()
    with embedded_cloud(folder / "state", audited=False, driver=null.DRIVER) as cloud:
        campaign = Campaign(cloud, seed)
        campaign.run(count, seconds)
        sent_seconds = round(time.monotonic() - began, 1)
        left = campaign.clean()
        audits = Audits(cloud)
        audit = audits.run()
        findings = audits.open()
    log = (folder / "state" / "log" / "keystone.log").read_text(errors="replace")
    return {
        "seed": seed,
        "requests": campaign.done,
        "seconds": sent_seconds,
        "by_status": {
            api: dict(sorted(found.items())) for api, found in sorted(campaign.statuses.items())
        },
        "server_errors": len(campaign.errors),
        "unanswered": len(campaign.unanswered),
        "keystone_database_locked": log.count("database is locked"),
        "left": left,
        "audit": audit,
        "findings": findings,
        "samples": [*campaign.errors, *campaign.unanswered],
    }


def main() -> int:
    """Print JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=3600, help="no requests after that")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = report(given.requests, given.seconds, given.seed, Path(folder))
    print(json.dumps(found, indent=2))
    failed = ("server_errors", "unanswered", "keystone_database_locked", "left", "findings")
    return int(any(found[name] for name in failed))


if __name__ == "__main__":
    sys.exit(main())
