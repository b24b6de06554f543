"""``python -m micronova`` and the ``micronova`` command."""

from __future__ import annotations

import sys

import micronova  # noqa: F401  (puts the packages on the import path)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    from common.process import garbage

    garbage.load()
    from cli.streams import write_anything

    write_anything()
    from cli.main import main as run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
