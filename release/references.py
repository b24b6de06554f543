"""Where the API references of OpenStack describe each operation: ``references.json``.

``python -m release.references FOLDER`` reads the clones FOLDER/nova, cinder, glance, neutron-lib,
placement and senlin, and writes it. Senlin's last branch is stable/2023.2. Apache-2.0, OpenStack
Foundation.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_name("references.json")
_SITE = "https://docs.openstack.org/api-ref"
CLONES: Mapping[str, tuple[str, str, str]] = {
    "compute": ("nova", "", f"{_SITE}/compute/"),
    "placement": ("placement", "", f"{_SITE}/placement/"),
    "volume": ("cinder", "v3", f"{_SITE}/block-storage/v3/"),
    "image": ("glance", "v2", f"{_SITE}/image/v2/"),
    "network": ("neutron-lib", "v2", f"{_SITE}/network/v2/"),
    "clustering": ("senlin", "", f"{_SITE}/clustering/"),
}
"""{API: (repository, folder of its reference, address)}."""

_VERSION = re.compile(r"^/?v\d[.\d]*(?:/\{(?:admin_)?project_id\})?(?=/)")
_FORM = re.compile(r"\.json$")
_PARAMETER = re.compile(r"\{[^{}]+\}")
_FIRST = re.compile(r" /[\w-]+/")
_TITLE = r"^(?P<title>\S.*)\n(?:=|~|-|\^|\*|#|\"|'|\+){3,}$"
_METHOD = r"^\.\. rest_method::\s+(?P<method>[A-Z]+) +(?P<path>\S+)"
_NAMED = r"^ +- (?P<named>[\w-]+):"
_PART = re.compile("|".join((_TITLE, _METHOD, _NAMED)), re.MULTILINE)
_INCLUDED = re.compile(r"^\.\. include:: +(\S+)", re.MULTILINE)
_ACTION = re.compile(r"\(([\w-]+) [Aa]ction\)")


def key(method: str, path: str, action: str = "") -> str:
    """Return the name of an operation, whatever its parameters are called."""
    path = _PARAMETER.sub("{}", _FORM.sub("", _VERSION.sub("", path))).rstrip("/") or "/"
    return f"{method} {path} {action}".rstrip()


def link(api: str, method: str, path: str, action: str = "") -> str | None:
    """Return where an operation is described; None: the real service has no such operation."""
    named = key(method, path, action)
    # Neutron describes tags of all resources at once.
    return _links()[api].get(named) or _links()[api].get(_FIRST.sub(" /{}/", named))


@functools.cache
def _links() -> dict[str, dict[str, str]]:
    """{API: {operation: link}}"""
    found: dict[str, dict[str, str]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def read(folder: Path, address: str) -> dict[str, str]:
    """Return {operation: link} of one reference."""
    found: dict[str, str] = {}
    for page in sorted(folder.rglob("*.rst")):
        name = page.relative_to(folder).with_suffix(".html").as_posix()
        url = address + ("" if name == "index.html" else name)
        sections = _sections(_whole(page))
        times = Counter(one for names, anchor in sections for one in (anchor, *names))
        for names, anchor in sections:
            for operation in names:
                # Sections with one title have anchors that aren't known; several sections about
                # one operation are actions.
                is_one = times[operation] == times[anchor] == 1
                found.setdefault(operation, f"{url}#{anchor}" if is_one else url)
    return dict(sorted(found.items()))


def _whole(page: Path) -> str:
    """Return a page with what it includes."""
    included = _INCLUDED.findall(page.read_text(encoding="utf-8"))
    files = [page.parent / name for name in included]
    return "\n".join(one.read_text(encoding="utf-8") for one in files if one.is_file())


def _sections(text: str) -> list[tuple[list[str], str]]:
    """Return (operations, anchor) of the sections that describe a call."""
    found, title, names = list[tuple[list[str], str]](), "", list[str]()
    for part in _PART.finditer(text):
        if part["title"] and part["title"] not in ("Request", "Response"):
            title = part["title"]
        elif part["method"]:
            names = [key(part["method"], part["path"], _action(title))]
            found.append((names, _anchor(title)))
        elif part["named"] and _names_action(names, part["named"]):
            names.append(f"{names[0]} {part['named']}")
    return found


def _names_action(names: list[str], parameter: str) -> bool:
    """Return whether a parameter is the first one of a body that names the action."""
    is_first = len(names) == 1 and names[0].endswith(("/action", "/actions"))
    return is_first and not parameter.endswith("_id")


def _action(title: str) -> str:
    found = _ACTION.search(title)
    return found[1] if found else ""


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-").lstrip("0123456789-")


def main(arguments: list[str]) -> None:
    """Write the file."""
    clones = Path(arguments[0])
    found = {
        api: read(clones / repository / "api-ref" / "source" / folder, address)
        for api, (repository, folder, address) in CLONES.items()
    }
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
