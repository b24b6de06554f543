"""What others hold of a release, as names: ``python -m release.surfaces FILE``.

Users, operators, monitoring, services of the release before, databases and marks on VMs hold
these. From 1.0.0 on something may be added to each, and nothing removed or changed.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import enum
import hashlib
import importlib
import inspect
import json
import pkgutil
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "release" / "surfaces"
"""A file for each release, which it wrote itself."""

Surface = Mapping[str, str]
"""Names, and what must not change about each."""

_STEP = re.compile(r"(api|compute|conductor|scheduler)_[a-z_]+")
#: what declares enumerations
_PACKAGES = ("common.messages", "common.resources", "common.failures", "common.moving")
_PROTOCOLS = (
    ("conductor", "conductor.rpc", "ConductorRpc"),
    ("conductor", "common.rpc.events", "ConductorEvents"),
    ("compute", "compute.rpc_api", "WorkerRpc"),
    ("compute_announce", "common.rpc.events", "WorkerEvents"),
    ("scheduler", "scheduler.rpc_api", "SchedulerRpc"),
    ("host_facts", "common.rpc.events", "HostEvents"),
)


def options() -> Surface:
    """The options of the configuration, and what their values are."""
    from launcher import sample

    return {
        f"[{group}] {name}": type(option.type).__name__
        for group, found in sample.options().items()
        for name, option in found.items()
    }


def routes() -> Surface:
    """Methods and paths of all APIs and pages."""
    from dashboard.sections import SECTIONS
    from launcher import sample

    ways = [way for protected in sample.protected().values() for way in protected]
    pages = [f"page {page.path}" for section in SECTIONS for page in section.pages]
    return dict.fromkeys([*(f"{method} {path}" for method, path in ways), *pages], "")


def policies() -> Surface:
    """The rules of the APIs, as policy files name them."""
    from launcher import sample

    return dict.fromkeys(sample.policy_names(), "")


def metrics() -> Surface:
    """The metrics, their kinds and labels."""
    from common.metrics import instruments, table

    return {
        one.name: f"{type(one).__name__}({', '.join(one.labels)})"
        for one in vars(table).values()
        if isinstance(one, instruments.Instrument)
    }


def steps() -> Surface:
    """The steps of operations, as events of server actions name them."""
    return {
        one.value: ""
        for folder in ("conductor", "compute/commands", "common/story")
        for one in _constants(ROOT / folder)
        if _STEP.fullmatch(one.value)
    }


def findings() -> Surface:
    """The codes of the doctor's findings, and the audit's kinds."""
    from conductor.audit import kinds

    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", page, re.MULTILINE)
    codes = [code for row in rows for code in re.findall(r"`([a-z_]+)`", row)]
    return dict.fromkeys(
        [*(f"audit {name}" for name in kinds.KINDS), *(f"doctor {code}" for code in codes)], ""
    )


def errors() -> Surface:
    """The codes of errors."""
    from common import errors as table

    classes = [one for one in vars(table).values() if isinstance(one, type)]
    return {one.__name__: one.code for one in classes if issubclass(one, table.MicronovaError)}


def values() -> Surface:
    """The members of all enumerations: states, statuses, categories, verdicts, actions."""
    from conductor import plans

    found = {
        f"{one.__name__}.{member.name}": str(member.value)
        for module in _modules(*_PACKAGES)
        for one in _own(module)
        if issubclass(one, enum.Enum)
        for member in one
    }
    return found | {f"action {name}": "" for name in plans.KNOWN_ACTIONS}


def fields() -> Surface:
    """The fields of messages, and of what is stored as JSON, with their types.

    What a release adds has a default: ``optional``.
    """
    found = {}
    messages = _messages()
    names = collections.Counter(one.__name__ for one in messages)
    for one in messages:
        name, written = one.__name__, _annotations(one)
        if names[name] > 1:
            name = f"{one.__module__}.{name}"
        for field in dataclasses.fields(one):
            optional = " optional" if _is_optional(field) else ""
            found[f"{name}.{field.name}"] = f"{written[field.name]}{optional}"
    return found


def _messages() -> set[Any]:
    """Return the dataclasses that cross the message bus, or are stored as plans and params."""
    from common.codec import Tagged, family
    from common.messages.commands import Command
    from common.messages.questions import Question
    from common.messages.reports import Outcome
    from conductor import plans

    todo: list[Any] = [*plans.PLANS.values(), *plans.PARAMS.values()]
    todo += [one for base in (Command, Question, Outcome) for one in family(base)]
    todo += [hint for _, method in _methods() for hint in typing.get_type_hints(method).values()]
    found: set[Any] = set()
    while todo:
        hint = todo.pop()
        todo += typing.get_args(hint)
        if hint in found or not isinstance(hint, type) or not dataclasses.is_dataclass(hint):
            continue
        found.add(hint)
        todo += typing.get_type_hints(hint).values()
        todo += hint.__subclasses__() if issubclass(hint, Tagged) else ()
    return found


def _annotations(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in reversed(cls.__mro__):
        found |= inspect.get_annotations(one) if one is not object else {}
    return found


def _is_optional(field: dataclasses.Field[Any]) -> bool:
    given = (field.default, field.default_factory)
    return any(one is not dataclasses.MISSING for one in given) or not field.init


def methods() -> Surface:
    """The methods of services on the message bus, with their arguments."""
    found = {}
    for name, method in _methods():
        found[name] = ""
        for argument in list(inspect.signature(method).parameters.values())[2:]:
            given = argument.default is not inspect.Parameter.empty
            found[f"{name}({argument.name})"] = "optional" if given else ""
    return found


def _methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    for topic, module, name in _PROTOCOLS:
        protocol = getattr(importlib.import_module(module), name)
        for method, function in inspect.getmembers(protocol, inspect.isfunction):
            if not method.startswith("_"):
                yield f"{topic}.{method}", function


def names() -> Surface:
    """What is derived from names: UUIDs, files of images, marks on VMs."""
    from common import ids
    from common.resources import image_files
    from compute.hypervisor.proxmox.vmconfig import marks

    kinds = ("cloud", "host", "image", "network", "notification", "service", "subnet")
    digest = hashlib.sha512(b"an image").hexdigest()
    cloud, image = (ids.named(kind, "an example") for kind in ("cloud", "image"))
    return {
        **{f"UUID of {kind}": ids.named(kind, "an example") for kind in (*kinds, "volume_type")},
        "number of volume": ids.numbered("volume", 77),
        "file": image_files.volid("local", cloud, image, digest, "qcow2"),
        **{
            f"mark {name}": value
            for name, value in vars(marks).items()
            if isinstance(value, str) and value.startswith("micronova: ")
        },
    }


def revisions() -> Surface:
    """The revisions of both databases, which are history: their texts."""
    return {
        str(path.relative_to(ROOT)): hashlib.sha256(path.read_bytes()).hexdigest()
        for database in ("db", "placement/db")
        for path in sorted((ROOT / database / "migrations").rglob("*.py"))
        if path.name != "__init__.py"
    }


def commands() -> Surface:
    """The commands of micronova, its programs, units and WSGI applications."""
    from cli.commands import COMMANDS
    from launcher.web import NAMES

    units = {f"unit {path.name}": "" for path in (ROOT / "etc" / "systemd").iterdir()}
    applications = {f"micronova.wsgi:{name}": "" for name in NAMES}
    return {f"micronova {name}": "" for name in COMMANDS} | units | applications


SURFACES: Mapping[str, Callable[[], Surface]] = {
    one.__name__: one
    for one in (
        *(
            options,
            routes,
            policies,
            metrics,
            steps,
            findings,
            errors,
            values,
            fields,
            methods,
            names,
        ),
        *(revisions, commands),
    )
}


def present() -> dict[str, dict[str, str]]:
    """Return the surfaces of this tree."""
    return {kind: dict(sorted(collect().items())) for kind, collect in SURFACES.items()}


def broken(recorded: Mapping[str, Surface], now: Mapping[str, Surface]) -> Iterator[str]:
    """Yield what a release had and this tree has not, or has otherwise; and new fields and
    arguments without a default, which services of the release don't send."""
    for kind, had in recorded.items():
        has = now.get(kind, {})
        for name, value in had.items():
            if name not in has:
                yield f"{kind}: {name} is gone"
            elif has[name] != value and has[name] != f"{value} optional".strip():
                yield f"{kind}: {name} was {value!r}, and is {has[name]!r}"
    yield from _required(recorded, now)


def _required(recorded: Mapping[str, Surface], now: Mapping[str, Surface]) -> Iterator[str]:
    for kind, ending in (("fields", r"\.\w+"), ("methods", r"\(\w+\)")):
        had, has = recorded.get(kind, {}), now.get(kind, {})
        owners = {re.sub(rf"{ending}$", "", name) for name in had}
        for name in has.keys() - had.keys():
            owner = re.sub(rf"{ending}$", "", name)
            if owner != name and owner in owners and not has[name].endswith("optional"):
                yield f"{kind}: {name} is new, and has no default"


def _constants(folder: Path) -> Iterator[Any]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node


def _modules(*packages: str) -> Iterator[ModuleType]:
    for name in packages:
        module = importlib.import_module(name)
        yield module
        for one in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
            yield importlib.import_module(one.name)


def _own(module: ModuleType) -> list[type]:
    classes = [one for one in vars(module).values() if isinstance(one, type)]
    return [one for one in classes if one.__module__ == module.__name__]


def write(path: Path) -> None:
    """Write the surfaces of this tree."""
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(present(), indent=1, sort_keys=True, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
