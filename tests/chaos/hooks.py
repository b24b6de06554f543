"""In a child process: every message and transaction asks the director first, and reports after.

The seams are those of the libraries: oslo.messaging's transport and SQLAlchemy's dialect. No
product code knows of them.
"""

from __future__ import annotations

import inspect
import json
import socket
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

import oslo_messaging
from sqlalchemy.engine.default import DefaultDialect

from common import codec
from common.messages.reports import Report
from tests.chaos.director import MESSAGE, READY, TRANSACTION
from tests.fixtures.messages import snake

#: methods of agents that take any message of a family, and the argument that holds it
KINDS = {"execute": "command", "ask": "question"}
#: what the director may say; other words are the simulator's and placement's
FAIL, LOSE, DROP = "fail", "lose", "drop"


class Line:
    """To the director: a connection for each thread, since each waits for its own answer."""

    def __init__(self, path: str, process: str) -> None:
        self._path, self._process = path, process
        self._local = threading.local()

    def ready(self) -> None:
        """This process runs."""
        self._ask(kind=READY)

    def before(self, kind: str, name: str) -> tuple[str, int]:
        """What shall become of the step, and its ticket."""
        answer = self._ask(kind=kind, name=name)
        return str(answer["do"]), int(answer["ticket"])

    def after(self, ticket: int) -> str:
        """What shall become of the step's answer."""
        return str(self._ask(kind="", ticket=ticket)["do"])

    def _ask(self, **said: Any) -> dict[str, Any]:
        stream = getattr(self._local, "stream", None)
        if stream is None:
            connection = socket.socket(socket.AF_UNIX)
            connection.connect(self._path)
            stream = self._local.stream = connection.makefile("rw", encoding="utf-8")
        stream.write(json.dumps({"process": self._process, **said}) + "\n")
        stream.flush()
        answer: dict[str, Any] = json.loads(stream.readline())
        return answer


def install(line: Any) -> None:
    """Have every message and transaction of this process pass by the line, or the director."""
    _hook_messages(line)
    _hook_transactions(line)


def _hook_messages(line: Any) -> None:
    send = oslo_messaging.transport.Transport._send

    def hooked(self: Any, target: Any, ctxt: Any, message: Any, **options: Any) -> Any:
        waits = options.get("wait_for_reply")
        verdict, ticket = line.before(MESSAGE, message_name(message))
        if verdict == FAIL:
            raise oslo_messaging.MessageDeliveryFailure("ordered: not sent")
        if verdict == DROP:
            if waits:
                raise oslo_messaging.MessagingTimeout("ordered: nobody answers")
            return None
        answer = send(self, target, ctxt, message, **options)
        if line.after(ticket) == LOSE:
            if waits:
                raise oslo_messaging.MessagingTimeout("ordered: the answer is lost")
            raise oslo_messaging.MessageDeliveryFailure("ordered: sent all the same")
        return answer

    oslo_messaging.transport.Transport._send = hooked


def _hook_transactions(line: Any) -> None:
    commit: Callable[[Any, Any], None] = DefaultDialect.do_commit

    def hooked(self: Any, connection: Any) -> None:
        name = use_case(sys._getframe())
        if name is None:
            commit(self, connection)
            return
        verdict, ticket = line.before(TRANSACTION, name)
        if verdict == FAIL:
            _cut(self, connection, "ordered: nothing was committed")
        commit(self, connection)
        if line.after(ticket) == LOSE:
            _cut(self, connection, "ordered: committed all the same")

    DefaultDialect.do_commit = hooked  # type: ignore[method-assign]


def _cut(dialect: Any, connection: Any, why: str) -> None:
    """The connection breaks in the middle, as the driver reports it."""
    connection.dbapi_connection.close()
    raise dialect.loaded_dbapi.OperationalError(why)


def message_name(message: Mapping[str, Any]) -> str:
    """The method; of a command or a question its kind, and of a report what comes last in it,
    since reports gather as time allows."""
    method = str(message.get("method"))
    if method in KINDS:
        return snake(codec.loads(message["args"][KINDS[method]])["kind"])
    if method != "report":
        return method
    reports = [codec.load(Report, one) for one in codec.loads(message["args"]["reports"])]
    return f"report of {_last_word(reports)}"


def use_case(frame: FrameType | None) -> str | None:
    """The use case that commits, e.g. ``Create._schedule``; None: not one of a conductor."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "_once" and code.co_filename.endswith("store/transactions.py"):
            work = frame.f_locals["work"]
            name = subject(work)
            reports = _reports(work)
            return f"{name} of {_last_word(reports)}" if reports else name
        frame = frame.f_back
    return None


def subject(work: Any) -> str:
    """What a transaction is about; what takes addresses was given to ``Settling``."""
    while work.__qualname__.startswith("Settling."):
        work = next(one for one in _cells(work) if inspect.isroutine(one))
    name: str = work.__qualname__.partition(".<locals>")[0]
    return name


def _cells(work: Any) -> list[Any]:
    return [cell.cell_contents for cell in work.__closure__ or ()]


def _reports(work: Any) -> list[Report]:
    cells = _cells(work)
    lists = [cell for cell in cells if isinstance(cell, list)]
    return [one for found in lists for one in found if isinstance(one, Report)]


def _last_word(reports: Sequence[Report]) -> str:
    last = reports[-1]
    if last.outcome is not None:
        return "the outcome"
    return last.steps[-1].name if last.steps else "nothing"
