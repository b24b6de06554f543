"""What can go wrong between the dashboard and the APIs."""

from __future__ import annotations

from common.errors import Conflict, Forbidden, MicronovaError, TooLarge, Unauthorized, Unavailable


class ApiRefused(MicronovaError):
    """An API answered with an error; the message is its sentence."""

    code = "micronova.dashboard.api_refused"
    sentence = "The API refused the request."

    def __init__(self, message: str, *, status: int, request_id: str = "") -> None:
        super().__init__(message)
        self.status = status
        """The API's HTTP status."""
        self.request_id = request_id
        """What `explain` finds it by; empty: the API sent none."""


def status_of(refused: MicronovaError | None) -> int:
    """Return the status of a page that says why a form was refused; 200: it wasn't."""
    if isinstance(refused, ApiRefused):
        # an API that fails is no failure of the dashboard
        return refused.status if refused.status < 500 else 502
    return 400 if refused else 200


class ApiUnreachable(Unavailable):
    """An API doesn't answer."""

    code = "micronova.dashboard.api_unreachable"
    sentence = "The API can't be reached."


class SessionEnded(Unauthorized):
    """Nobody is logged in, or not any more."""

    code = "micronova.dashboard.session_ended"
    sentence = "Log in first."


class LoginFailed(Unauthorized):
    """Keystone refuses the login."""

    code = "micronova.dashboard.login_failed"
    sentence = "User name, password or domain is wrong."


class TooManyLogins(Conflict):
    """Too many failed logins."""

    code = "micronova.dashboard.too_many_logins"
    sentence = "Too many failed logins: wait a few minutes."


class ForgedRequest(Forbidden):
    """A change was asked for by a page that isn't the dashboard's."""

    code = "micronova.dashboard.forged_request"
    sentence = "The form has expired, or another site has sent it. Reload the page."


class FormTooLarge(TooLarge):
    """A form is longer than any of ours."""

    code = "micronova.dashboard.form_too_large"
    sentence = "The form is too large."
