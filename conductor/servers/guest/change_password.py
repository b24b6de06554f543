"""Set the password of a server's administrator, through the guest agent.

The password is passed on and never stored, so an interrupted change can't be continued: a process
that takes the operation over closes it as failed.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Mapping

from common import clock
from common.context import RequestContext
from common.errors import Conflict, MicronovaError, StaleTransition
from common.log import logger
from common.messages.guests import PasswordProblem
from common.messages.questions import SetPassword
from common.messages.reports import Category, Failure, Step
from common.resources.states import OperationState, TaskState
from conductor.cloud import Cloud
from conductor.engine import close, guests
from conductor.engine.stages import Stage, Table, Task
from conductor.servers.accept import Accept
from conductor.store.ledger import operations as ledger
from conductor.store.servers import servers
from conductor.store.transactions import Transaction

LOG = logger(__name__)

ACTION = "changePassword"
#: Nova's event
STEP = "compute_set_admin_password"
#: who the agents set it for, unless the image says so
_USERS: Mapping[str, str] = {"windows": "Administrator"}
_USER = "root"
#: what users read, in Nova's words where it has some
_SENTENCES: Mapping[PasswordProblem, str] = {
    PasswordProblem.NO_AGENT: "Guest agent is not enabled for the instance",
    PasswordProblem.NOT_SUPPORTED: "Set admin password is not supported",
}
_FAILED = "Failed to set admin password on {uuid} because {reason}"
_REASONS: Mapping[PasswordProblem, str] = {
    PasswordProblem.SILENT: "its guest agent does not answer",
    PasswordProblem.STOPPED: "instance {uuid} is not running",
    PasswordProblem.TOO_SHORT: "it must have 5 to 1024 characters",
    PasswordProblem.REFUSED: "error setting admin password",
    PasswordProblem.UNKNOWN: "the answer was lost; whether it was set is not known: set it again",
}


def change_password(
    cloud: Cloud, accept: Accept, ctxt: RequestContext, server_uuid: str, password: str
) -> None:
    """See ``ConductorRpc.change_password``."""
    operation = accept.act(ctxt, server_uuid, ACTION)
    if operation is None:
        raise LookupError("only a delete may be in progress already")
    with cloud.store.read() as connection:
        task = Task(operation, servers.get(connection, server_uuid))
    began = clock.utcnow()
    try:
        with cloud.store.read() as connection:
            target = guests.target(cloud, connection, task.server)
        user = user_of(task.server.image_properties)
        problem = cloud.compute.ask(ctxt, target, SetPassword(target, user, password))
    except MicronovaError as error:
        _end(cloud, task, _step(began, "Error"), _failure(task, error.message))
        raise
    if problem is not None:
        sentence = sentence_of(problem, server_uuid)
        _end(cloud, task, _step(began, "Error"), _failure(task, sentence))
        raise Conflict(sentence)
    _end(cloud, task, _step(began, "Success"), None)
    LOG.info("Server %s: the administrator's password is set.", server_uuid)


def user_of(image_properties: Mapping[str, str]) -> str:
    """Return whose password is set: the image says so, or its system does."""
    named = image_properties.get("os_admin_user")
    return named or _USERS.get(image_properties.get("os_type", ""), _USER)


def sentence_of(problem: PasswordProblem, server_uuid: str) -> str:
    """Return what the user reads."""
    if problem in _SENTENCES:
        return _SENTENCES[problem]
    reason = _REASONS[problem].format(uuid=server_uuid)
    return _FAILED.format(uuid=server_uuid, reason=reason)


class ChangePasswordFlow:
    """What becomes of a change that its conductor didn't end."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud

    def table(self) -> Table[Task]:
        """Return its one stage, which is never repeated."""
        stage = Stage("set_password", self._give_up, shown=TaskState.UPDATING_PASSWORD)
        lost = functools.partial(close.overtaken, self._cloud)
        return Table((stage,), on_superseded=lost, on_deadline=self._give_up)

    def _give_up(self, task: Task) -> None:
        text = sentence_of(PasswordProblem.UNKNOWN, task.server.uuid)
        _end(self._cloud, task, _step(clock.utcnow(), "Error"), _failure(task, text))
        LOG.warning("Server %s: %s", task.server.uuid, text)


def _step(began: datetime.datetime, result: str) -> Step:
    return Step(STEP, 1, began, clock.utcnow(), result)


def _failure(task: Task, sentence: str) -> Failure:
    return Failure(
        Category.CONFIGURATION,
        sentence,
        STEP,
        host=task.server.host,
        owner_message=sentence,
    )


def _end(cloud: Cloud, task: Task, step: Step, failure: Failure | None) -> None:
    """End the operation; what has overtaken it counts."""

    def work(connection: Transaction) -> None:
        ledger.upsert_events(connection, [ledger.conductor_event(task.operation, step)])
        close.settle(connection, task)
        if failure is None:
            ledger.close(connection, task.operation.id, OperationState.DONE)
        else:
            close.close_failed(connection, task.operation, failure)

    try:
        cloud.store.run(work)
    except StaleTransition:
        close.overtaken(cloud, task)
