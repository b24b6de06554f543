"""Log lines: one record is one line of printable characters, whatever clients send."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_context import context as oslo_context
from oslo_log import formatters

from common import config, log
from common.context import RequestContext

HOSTILE = "a\nb\r\x1b[2J\x7f\x9b31m\u2028\u2029\u202e\u2066\x00\x85\udcffz"
ESCAPED = r"a\nb\r\x1b[2J\x7f\x9b31m\u2028\u2029\u202e\u2066\x00\x85\udcffz"
UUID = "0d3f9a52-6c1e-4b0a-9d3b-5c1f6f1e2a3b"


def written(make: str = "%(levelname)s %(message)s", **record: object) -> list[str]:
    """Return the lines that a record is written as."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log.Escaping(logging.Formatter(make)))
    handler.handle(logging.makeLogRecord({"levelname": "INFO", "levelno": 20, **record}))
    return stream.getvalue().removesuffix("\n").split("\n")


def test_control_characters_are_written_as_escapes() -> None:
    assert log.escaped(HOSTILE) == ESCAPED
    assert written(msg="path %s", args=(HOSTILE,)) == [f"INFO path {ESCAPED}"]


def test_text_of_other_languages_is_left_alone() -> None:
    assert log.escaped("Größe 名前 \\n %0a") == "Größe 名前 \\n %0a"


def test_values_of_a_context_are_escaped_too() -> None:
    assert written("%(user_name)s: %(message)s", msg="m", user_name="a\nb") == [r"a\nb: m"]


def failed(error: Exception) -> list[str]:
    try:
        try:
            raise KeyError(HOSTILE)
        except KeyError as cause:
            raise error from cause
    except type(error):
        return written(msg="failed", exc_info=sys.exc_info())


def test_the_text_of_an_exception_is_one_line_below_the_record() -> None:
    lines = failed(ValueError("x\n2026-01-01 00:00:00.000 1 INFO micronova.fake [- -] forged"))
    assert lines[0] == "INFO failed"
    assert all(line.startswith("    ") for line in lines[1:])
    assert lines[-1].startswith("    ValueError: x\\n2026-01-01")
    assert "    The above exception was the direct cause of the following exception:" in lines
    assert any('File "' in line for line in lines)


def test_notes_and_groups_of_exceptions_are_indented() -> None:
    error = ExceptionGroup("all\nof them", [ValueError("one\ntwo")])
    error.add_note("first\nsecond")
    lines = failed(error)
    assert all(line.startswith("    ") for line in lines[1:])
    assert any(r"ValueError: one\n" in line for line in lines)


def test_a_stack_is_indented() -> None:
    lines = written(msg="here", stack_info="Stack\n  File x")
    assert lines == ["INFO here", "    Stack", "      File x"]


def test_every_handler_of_the_process_is_escaped_once() -> None:
    mine = logging.getLogger("tests.escaped")
    handlers = [logging.StreamHandler(io.StringIO()), logging.StreamHandler(io.StringIO())]
    handlers[1].setFormatter(formatters.JSONFormatter())
    try:
        for handler in handlers:
            mine.addHandler(handler)
        log.escape_output()
        first = handlers[0].formatter
        log.escape_output()
        assert isinstance(first, log.Escaping)
        assert handlers[0].formatter is first
        assert isinstance(handlers[1].formatter, formatters.JSONFormatter)
    finally:
        for handler in handlers:
            mine.removeHandler(handler)


def test_setup_escapes_what_a_service_writes(capsys: pytest.CaptureFixture[str]) -> None:
    conf = config.load([log.register])
    root = logging.getLogger()
    before = list(root.handlers), root.level
    try:
        log.setup(conf, "test")
        try:
            raise OSError("down\nforged")
        except OSError:
            # oslo.log adds the error that is being handled to the line
            log.logger("tests").warning("a\nb")
        line = capsys.readouterr().out
        assert line.count("\n") == 1
        assert line.endswith("a\\nb: OSError: down\n")
    finally:
        root.handlers[:], root.level = before


@pytest.mark.parametrize("text", ["a\nb", "x" * 40, "../1", f"{UUID}\n", "٣" * 32])
def test_a_context_logs_nothing_but_identifiers(text: str) -> None:
    made = RequestContext(
        request_id=text, global_request_id=text, user_id=text, project_id=text, resource_id=text
    )
    values = made.get_logging_values()
    for name in (
        "request_id",
        "global_request_id",
        "user",
        "project",
        "project_id",
        "resource_id",
    ):
        assert values[name] == "-"


def test_a_context_logs_identifiers() -> None:
    made = RequestContext(
        request_id=f"req-{UUID}",
        user_id="ab" * 32,
        project_id=UUID.replace("-", ""),
        resource_type="volume",
        resource_id=UUID,
    )
    values = made.get_logging_values()
    assert values["request_id"] == f"req-{UUID}"
    assert values["user"] == "ab" * 32
    assert values["project_id"] == UUID.replace("-", "")
    assert (values["resource_type"], values["resource_id"]) == ("volume", UUID)


@pytest.mark.parametrize(
    ("kind", "named", "shown"),
    [
        ("template", "c1/100123", ("template", "c1/100123")),
        ("host", "pve1", ("host", "pve1")),
        ("volume", "pve1", ("volume", "-")),
        ("secret", UUID, ("resource", UUID)),
        (None, None, ("resource", "-")),
    ],
)
def test_a_context_names_its_resource_in_the_form_of_its_type(
    kind: str | None, named: str | None, shown: tuple[str, str]
) -> None:
    values = RequestContext(resource_type=kind, resource_id=named).get_logging_values()
    assert (values["resource_type"], values["resource_id"]) == shown


class OslosOwn(formatters.ContextFormatter):
    """Formats as oslo.log does: our shorter way is for its own class only."""


def raised(error: Exception) -> object:
    try:
        raise error
    except type(error):
        return sys.exc_info()


A_CONTEXT = {
    "request_id": f"req-{UUID}",
    "global_request_id": f"req-{UUID[::-1]}",
    "user_id": "ab" * 16,
    "project_id": "cd" * 16,
    "user_name": HOSTILE,
    "auth_token": "secret",
    "roles": ["member"],
}
CONTEXTS: list[dict[str, object] | None] = [
    None,
    {},
    A_CONTEXT,
    {**A_CONTEXT, "global_request_id": None, "resource_type": "server", "resource_id": UUID},
    {**A_CONTEXT, "project_id": HOSTILE, "resource_type": "host", "resource_id": "pve1"},
    {**A_CONTEXT, "request_id": "é\n", "resource_type": "secret", "resource_id": HOSTILE},
]
RECORDS: list[dict[str, object]] = [
    {},
    {"msg": "server %s on %s", "args": (UUID, "pve1")},
    {"msg": "%(name)s of %(n)d", "args": ({"name": HOSTILE, "n": 3},)},
    {"msg": HOSTILE},
    {"msg": "Größe 名前 100 %"},
    {"msg": ValueError("an object\nof two lines")},
    {"name": "micronova.a\nb", "process": None, "msecs": 7.9},
    {"resource": f"[volume-{UUID}] ", "instance": "vm", "extra_keys": ["resource"]},
    {"request_id": f"req-{UUID}", "project_id": "p", "resource_type": "t", "resource_id": "\n"},
    {"global_request_id": "given", "message": "mine", "asctime": "mine", "color": "\x1b[1m"},
    {"context": None},
    {"context": {"request_id": "a", "project_id": "b", "resource_type": "", "resource_id": 1}},
    {"created": 1450274066.0},
    {"exc_info": raised(OSError("down\nforged")), "msg": "failed"},
    {"exc_info": (None, None, None)},
    {"exc_text": "Traceback of another handler\nnext"},
    {"stack_info": "Stack\n  File x"},
]
LEVELS = [1, logging.DEBUG, 15, logging.INFO, 25, logging.WARNING, logging.ERROR]


def both(record: dict[str, object], **options: str) -> tuple[object, object]:
    """Return what we and oslo.log make of a record, lines or the type of an error."""
    conf = config.load([log.register])
    for name, value in options.items():
        conf.set_override(name, value)
    common = {"levelno": 20, "levelname": "INFO", "msg": "m", "created": 1.7e9, "msecs": 25.3}
    made: list[object] = []
    for kind in (formatters.ContextFormatter, OslosOwn):
        one = logging.makeLogRecord({**common, **record})
        formatter = log.Escaping(kind(datefmt="%H:%M:%S", config=conf))
        try:
            made.append(formatter.format(one))
        except (ValueError, TypeError) as error:
            made.append((type(error), str(error)))
    return made[0], made[1]


@pytest.fixture
def no_context() -> Iterator[None]:
    before = oslo_context.get_current()
    oslo_context._request_store.context = None
    yield
    oslo_context._request_store.context = before


@pytest.mark.usefixtures("no_context")
@pytest.mark.parametrize("values", CONTEXTS)
def test_lines_are_those_of_oslo_log(values: dict[str, Any] | None) -> None:
    if values is not None:
        RequestContext(**values)
    for record in RECORDS:
        for level in LEVELS:
            ours, theirs = both({**record, "levelno": level})
            assert ours == theirs


@pytest.mark.usefixtures("no_context")
def test_records_that_are_wrong_fail_as_with_oslo_log() -> None:
    for record in (
        {"msg": "%s %s", "args": ("one",)},
        {"msg": "nothing", "args": ("one",)},
        {"msg": "%(name)s", "args": ({"other": 1},)},
        {"request_id": "without a project"},
        {"msg": "m", "context": oslo_context.RequestContext(overwrite=False)},
    ):
        ours, theirs = both(record)
        assert ours == theirs


@pytest.mark.usefixtures("no_context")
@pytest.mark.parametrize(
    "option",
    [
        {"logging_context_format_string": "%(user_identity)s %(color)s%(message)s%(isotime)s"},
        {"logging_default_format_string": "%(project)s %(version)s %(instance)s%(message)s"},
        {"logging_debug_format_suffix": "%(message)s again"},
    ],
)
def test_formats_of_the_operator_are_used(option: dict[str, str]) -> None:
    for level in LEVELS:
        ours, theirs = both({"levelno": level, "msg": HOSTILE}, **option)
        assert ours == theirs
    RequestContext(**A_CONTEXT)  # type: ignore[arg-type]
    ours, theirs = both({"msg": HOSTILE}, **option)
    assert ours == theirs


@pytest.mark.usefixtures("no_context")
def test_a_line_asks_its_context_once() -> None:
    class Counting(RequestContext):
        asked_for = 0

        def get_logging_values(self) -> dict[str, Any]:
            self.asked_for += 1
            return super().get_logging_values()

    counting = Counting()
    formatter = log.Escaping(formatters.ContextFormatter(config=config.load([log.register])))
    formatter.format(logging.makeLogRecord({"levelno": 20, "msg": "m"}))
    assert counting.asked_for == 1
