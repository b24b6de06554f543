"""``python -m release.debian trixie``: the Debian package of a wheel, made in a clean chroot.

The wheel is that of ``dist/``, as ``make release`` leaves it there, or ``--wheel``.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

from packaging.utils import parse_wheel_filename

from release import archives, chroot
from release.chroot import Chroot

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".tox" / "debian"
SUITES = {"bookworm": 12, "trixie": 13}
"""{name: number of the release of Debian}"""
PACKAGES = ("ca-certificates", "debhelper", "dpkg-dev", "python3", "python3-venv")
_SOURCES = ("debian", "etc")
_PLACE = "build/micronova"


def main(words: Sequence[str]) -> int:
    """Make the package of each suite that is asked for; return the exit code."""
    parser = argparse.ArgumentParser(prog="make deb", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=SUITES, default=[*SUITES])
    parser.add_argument("--wheel", type=Path)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--cache", type=Path, default=CACHE, help="of minimal systems")
    asked = parser.parse_args(words)
    if lacking := chroot.missing():
        print(f"This needs {', '.join(lacking)}.", file=sys.stderr)
        return 1
    wheel = asked.wheel or newest(asked.dist)
    if wheel is None:
        print(f"There is no wheel in {asked.dist}: make release makes one.", file=sys.stderr)
        return 1
    for suite in asked.suites:
        print(package(suite, wheel, asked.dist, asked.cache), flush=True)
    return 0


def newest(dist: Path) -> Path | None:
    """Return the wheel of the newest version in a folder."""
    return max(dist.glob("micronova-*.whl"), key=_version, default=None)


def _version(wheel: Path) -> tuple[int, ...]:
    return parse_wheel_filename(wheel.name)[1].release


def package(suite: str, wheel: Path, dist: Path, cache: Path = CACHE) -> Path:
    """Make the package of a wheel for a release of Debian; return its path in `dist`."""
    kept = chroot.archive(suite, PACKAGES, cache)
    moment = archives.epoch(ROOT)
    with Chroot.of(kept) as machine:
        machine.trust()
        place = machine.root / _PLACE
        for name in _SOURCES:
            shutil.copytree(ROOT / name, place / name)
        shutil.copy(wheel, place.parent)
        (place / "debian" / "changelog").write_text(changelog(suite, wheel, moment), "utf-8")
        machine.run(
            *("env", "--chdir", f"/{_PLACE}", f"SOURCE_DATE_EPOCH={moment}"),
            f"MICRONOVA_WHEEL=/{_PLACE}/../{wheel.name}",
            # Nothing is compiled, so a compiler isn't needed.
            *("dpkg-buildpackage", "--build=binary", "--no-sign", "--no-check-builddeps"),
        )
        [made] = place.parent.glob("micronova_*.deb")
        dist.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(made, dist))


def changelog(suite: str, wheel: Path, moment: int) -> str:
    """Return the changelog of the package, which names the version and the release of Debian."""
    version = f"{parse_wheel_filename(wheel.name)[1]}~deb{SUITES[suite]}"
    when = format_datetime(datetime.fromtimestamp(moment, UTC))
    return (
        f"micronova ({version}) {suite}; urgency=medium\n\n"
        f"  * CHANGELOG.md of the source says what is new.\n\n"
        f" -- {maintainer()}  {when}\n"
    )


def maintainer() -> str:
    """Return whom debian/control names."""
    text = (ROOT / "debian" / "control").read_text(encoding="utf-8")
    [line] = [line for line in text.splitlines() if line.startswith("Maintainer: ")]
    return line.removeprefix("Maintainer: ")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
