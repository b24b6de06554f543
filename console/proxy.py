"""What is done with a browser's websocket: use its token up, fetch the agent, pass bytes on."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlsplit

from websockets.frames import CloseCode

from common import context
from common.errors import Conflict, MicronovaError, NotFound
from common.log import logger
from common.messages.consoles import ConsoleTarget, ConsoleType, token_hash
from common.messages.questions import OpenConsole
from common.resources.states import ResourceType
from common.streams import Stream, relay
from compute.client import ComputeClient
from conductor.rpc import ConductorRpc
from console import rfb
from console.sessions import Sessions

LOG = logger(__name__)

#: the agent connects before its answer arrives
AGENT_SECONDS = 5.0


class Refused(Exception):
    """The browser gets no console; the text is for it, and has no detail."""

    code = CloseCode.POLICY_VIOLATION


class Failed(Refused):
    """The token was good, and another one may do."""

    code = CloseCode.TRY_AGAIN_LATER


class Proxy:
    """Opens the consoles of tokens."""

    def __init__(
        self,
        conductor: ConductorRpc,
        compute: ComputeClient,
        sessions: Sessions,
        relay_url: str,
    ) -> None:
        self._conductor, self._compute = conductor, compute
        self._sessions, self._relay_url = sessions, relay_url

    def serve(self, browser: Stream, token: str, opened: Callable[[], None]) -> None:
        """Pass on until either end closes. Raises Refused before anything was sent.

        `opened` is called once the token is found to be good.
        """
        ctxt = context.internal()
        try:
            with self._sessions.session() as session:
                target = self._conductor.use_console_token(ctxt, token_hash(token))
                opened()
                ctxt.about(ResourceType.SERVER, target.server_uuid)
                order = OpenConsole(target, self._relay_url, session.grant)
                self._compute.ask(ctxt, target, order)
                agent = session.agent(AGENT_SECONDS)
                LOG.info("Server %s: a %s console opens.", target.server_uuid, target.type)
                self._pass_on(browser, agent, target)
                LOG.info("Server %s: a %s console has ended.", target.server_uuid, target.type)
        except (NotFound, Conflict) as error:
            LOG.warning("A console is refused: %s", error.message)
            raise Refused("The token is invalid, or the server has no console now.") from error
        except MicronovaError as error:
            LOG.warning("A console is not opened: %s", error.message)
            raise Failed("The console could not be opened. Ask for a new one.") from error

    @staticmethod
    def _pass_on(browser: Stream, agent: Stream, target: ConsoleTarget) -> None:
        try:
            greeted = rfb.greet(browser) if target.type is ConsoleType.NOVNC else browser
        except OSError as error:
            LOG.info("Server %s: the client left early: %s", target.server_uuid, error)
            agent.close()
            browser.close()
            return
        relay(greeted, agent)


def token_of(target: str) -> str | None:
    """Return the token in a request's target, `/?token=TOKEN`; None where there is none."""
    return next(iter(parse_qs(urlsplit(target).query).get("token", [])), None)
