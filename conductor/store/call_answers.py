"""What calls were answered that nothing else says: of a call that is repeated it is the answer.

Of a call without an answer its first transaction records that it was carried out, unless that
says that more follows. The others are found by the operation or the UUIDs that they make, or note
their answer in their transaction.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from common import clock, codec
from common.errors import Unavailable
from common.rpc import UNKNOWN, deadlines
from db.schema import call_answers

#: the answer of the call that a transaction carries out, in the information of its connection
_NOTED = "micronova.answer"
#: in place of an answer: the transaction is not all of the call
_MORE = "micronova.more"
#: for how long answers are kept; no call is repeated for so long
_SECONDS = 3600.0


def note(connection: sa.Connection, answer: Any) -> None:
    """Note what the call that is carried out will be answered."""
    connection.info[_NOTED] = codec.dumps(answer)


def go_on(connection: sa.Connection) -> None:
    """Note that this transaction is not all of the call, which is carried out again if it is
    repeated."""
    connection.info[_NOTED] = _MORE


def forget(connection: sa.Connection) -> None:
    """Forget what a transaction noted that was rolled back."""
    connection.info.pop(_NOTED, None)


def write(connection: sa.Connection) -> None:
    """Record the answer as a part of the transaction, if it is to be recorded.

    Raises Unavailable if the call is carried out already, by another conductor.
    """
    deadline = deadlines.unanswered()
    if deadline is None or not (deadline.answers_nothing or _NOTED in connection.info):
        return
    answer = connection.info.pop(_NOTED, None)
    if answer == _MORE:
        return
    key = deadlines.made_by(deadline.wait.call, 0)
    row = {"id": key, "answer": answer, "answered_at": clock.utcnow()}
    try:
        connection.execute(call_answers.insert(), row)
    except sa.exc.IntegrityError:
        raise Unavailable("This call has come before.", outcome=UNKNOWN) from None


def delete_old(connection: sa.Connection) -> None:
    """Delete those that nobody asks for any more."""
    old = call_answers.c.answered_at < clock.after(-_SECONDS)
    connection.execute(call_answers.delete().where(old))
