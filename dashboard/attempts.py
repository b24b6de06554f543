"""Passwords that are tried are few: of a user from an address, and of all users from one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from common.log import logger
from dashboard.errors import ApiRefused, ApiUnreachable, LoginFailed, TooManyLogins
from dashboard.guard import Site, now
from web.connections import peer_of

LOG = logger(__name__)

_LONGEST = 255
T = TypeVar("T")


def counted(site: Site, who: tuple[str, str, str], attempt: Callable[[], T]) -> T:
    """Return what an attempt gives, as long as not too many have failed.

    `who`: user, domain and address. An attempt counts before it is made, or many at the same time
    would all pass. Raises TooManyLogins, LoginFailed, ApiRefused and ApiUnreachable.
    """
    user, _, address = who
    options, store = site.options, site.sessions.store
    pause = options.login_pause_seconds
    of_address, of_user = _counters(site, *who)
    # That of the address is first: names that are tried make no counters of their own then.
    most = {of_address: options.login_failures_of_address, of_user: options.login_failures}
    for key, failures in most.items():
        if store.count(key, now(), pause, more=1) > failures:
            raise TooManyLogins
    try:
        found = attempt()
    except LoginFailed:
        LOG.warning("A login of user %r from %s failed.", user[:_LONGEST], address)
        raise
    except (ApiRefused, ApiUnreachable):
        # This one alone: a password may be what Keystone can't answer.
        for key in most:
            store.count(key, now(), pause, more=-1)
        raise
    store.count(of_address, now(), pause, more=-1)
    store.forget(of_user)
    return found


def _counters(site: Site, user: str, domain: str, address: str) -> tuple[str, str]:
    """Return the names of the counters of an address, and of a user from there."""
    peer = peer_of((address,))
    # Keystone's names are the same in upper and lower case on MariaDB
    facts = (domain.casefold(), user.casefold(), peer)
    signed = site.sessions.signed
    return signed(f"logins of {peer}"), signed(f"login {facts}")
