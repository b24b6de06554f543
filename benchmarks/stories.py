"""What clients meet when something happens to a cloud: ``python -m benchmarks.stories``.

A cloud of two of each service, with HAProxy, three nodes of RabbitMQ and PostgreSQL with a
replica, runs on this machine. In each story two clients create servers, while a process dies,
stops, freezes or has a wrong clock, or a server of the bus or of the database is lost. Prints
JSON, a line for each story, and with ``--table`` the table of docs/operate.md. It fails where an
answer was wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.functional.stories import STORIES, TABLE, Result, play, whole_cloud


def main(argv: Sequence[str] | None = None) -> int:
    """Play the stories that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of those to play")
    parser.add_argument("--table", action="store_true", help="print the table of the page, too")
    options = parser.parse_args(argv)
    wanted = [one for one in STORIES if options.only in one.name]
    results: list[Result] = []
    with (
        tempfile.TemporaryDirectory(prefix="stories-") as folder,
        whole_cloud(Path(folder)) as stage,
    ):
        for story in wanted:
            results.append(play(stage, story))
            print(json.dumps(results[-1].as_json()), flush=True)
    if options.table:
        print("\n".join([TABLE, *(one.row() for one in results)]))
    return int(any(one.outcome.wrong for one in results))


if __name__ == "__main__":
    sys.exit(main())
