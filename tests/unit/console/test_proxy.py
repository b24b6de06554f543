"""What a browser reads whose console does not open."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("websockets")

from websockets.frames import CloseCode

from common.errors import Conflict, MicronovaError, NotFound, Unavailable
from common.messages.consoles import ConsoleTarget, ConsoleType
from console.proxy import Proxy, Refused
from console.sessions import Sessions

TARGET = ConsoleTarget("server", ConsoleType.NOVNC, "worker", "lab", "pve1", 100)


class Conductor:
    def __init__(self, error: MicronovaError | None = None) -> None:
        self._error = error

    def use_console_token(self, _ctxt: Any, _hash: str) -> ConsoleTarget:
        if self._error is not None:
            raise self._error
        return TARGET


class Compute:
    def ask(self, *_args: Any) -> None:
        raise Unavailable("The agent of pve1 does not answer.")


def _refused(conductor: Any) -> Refused:
    proxy = Proxy(conductor, Compute(), Sessions(1), "ws://proxy/relay")  # type: ignore[arg-type]
    with pytest.raises(Refused) as refused:
        proxy.serve(None, "token", lambda: None)  # type: ignore[arg-type]
    return refused.value


@pytest.mark.parametrize("error", [NotFound("used"), Conflict("being deleted")])
def test_a_token_that_opens_nothing_is_refused(error: MicronovaError) -> None:
    refused = _refused(Conductor(error))
    assert refused.code == CloseCode.POLICY_VIOLATION
    assert str(refused).startswith("The token is invalid")


@pytest.mark.parametrize("conductor", [Conductor(), Conductor(Unavailable("no conductor"))])
def test_what_does_not_answer_is_no_invalid_token(conductor: Conductor) -> None:
    refused = _refused(conductor)
    assert refused.code == CloseCode.TRY_AGAIN_LATER
    assert str(refused) == "The console could not be opened. Ask for a new one."
