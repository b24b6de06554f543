"""Keystone: the services' login, its roles, and the catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http import HTTPStatus
from shlex import quote
from typing import Any

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import loading
from keystoneauth1.session import Session
from oslo_config import cfg

from common.clients import credentials
from common.errors import ConfigurationError
from common.findings import Finding, Level

#: what clients look for, and why
CATALOG = {
    "compute": "servers",
    "placement": "scheduling",
    "image": "images",
    "network": "networks",
    "block-storage": "volumes",
    "volumev3": "volumes, for older clients",
    "clustering": "groups of servers",
}
#: type → the instance of micronova-api@ that serves it
SERVED = {"block-storage": "volume", "volumev3": "volume"}
_LOGIN = {
    "login_missing": "# [{}] username = <a user of Keystone>",
    "login_refused": "# [{}] password = <that of its username in Keystone>",
    "keystone_unreachable": "# [{}] auth_url = <URL of Keystone>",
}
TOKEN_CHECK = "keystone_authtoken"  # noqa: S105 - a section
#: one of these, by which placement takes changes; an agent's for its hosts
ROLES = frozenset({"admin", "service", "agent"})


def keystone(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield what is wrong with the login of `[placement]`, its roles, and the catalog.

    Yields nothing if no login is configured: the embedded cloud gets it from its own Keystone.
    """
    if not conf.placement.auth_type:
        return
    session, access, problem = _log_in("placement", lambda: credentials.session(conf, "placement"))
    if problem is not None:
        yield problem
        return
    if not ROLES & set(access.role_names):
        yield Finding(
            "role_missing",
            Level.BROKEN,
            "Keystone",
            f"The user {access.username} has not the role service on its project.",
            "Placement refuses its requests.",
            (_role_line(access),),
        )
    yield from _catalog(session, {one["type"] for one in access.service_catalog.catalog})


def token_check(conf: cfg.ConfigOpts) -> Iterator[Finding]:
    """Yield what is wrong with the login by which the APIs check tokens."""
    group = TOKEN_CHECK
    if not conf[group].auth_type:
        if conf.placement.auth_type:
            yield Finding(
                "token_check_missing",
                Level.WARNING,
                f"Keystone, [{group}]",
                "It has no login.",
                "APIs that read these files alone can't check tokens, and refuse every request.",
                (f"# [{group}] auth_type = password",),
            )
        return
    _, access, problem = _log_in(group, lambda: _session_of_the_check(conf))
    if problem is not None:
        yield problem
    elif not _may_check(access):
        yield Finding(
            "role_missing",
            Level.BROKEN,
            f"Keystone, [{group}]",
            f"The user {access.username} has neither the role service on its project nor the "
            "role reader on the system.",
            "Keystone doesn't let it check tokens: the APIs refuse every request.",
            (_role_line(access),),
        )


def _may_check(access: Any) -> bool:
    """Return whether Keystone lets a login check others' tokens."""
    roles = set(access.role_names)
    return bool({"admin", "service"} & roles or ("reader" in roles and access.system_scoped))


def _role_line(access: Any) -> str:
    user = f"openstack role add --user {quote(access.username)}"
    if access.system_scoped:
        return f"{user} --system all reader"
    return f"{user} --project {quote(access.project_name)} service"


def _session_of_the_check(conf: cfg.ConfigOpts) -> Session:
    """Return a session with the login of keystonemiddleware. Raises ConfigurationError."""
    group = conf[TOKEN_CHECK]
    try:
        plugin = loading.load_auth_from_conf_options(conf, TOKEN_CHECK)
    except ksa_exceptions.AuthPluginException as error:
        raise ConfigurationError(f"It doesn't say how to log in: {error}") from error
    verify = False if group.insecure else (group.cafile or True)
    cert = (group.certfile, group.keyfile) if group.keyfile else group.certfile
    return Session(auth=plugin, verify=verify, cert=cert)


def _log_in(group: str, make: Callable[[], Session]) -> tuple[Any, Any, Finding | None]:
    """Return the session of a group's login and the token, or what is wrong with it."""
    try:
        session = make()
        return session, session.auth.get_access(session), None  # type: ignore[union-attr]
    except ConfigurationError as error:
        return None, None, _broken("login_missing", group, error.message)
    except ksa_exceptions.Unauthorized as error:
        what = f"It refuses the services' login: {error.message}"
        return None, None, _broken("login_refused", group, what)
    except ksa_exceptions.ClientException as error:
        return None, None, _broken("keystone_unreachable", group, f"It doesn't answer: {error}")


def _catalog(session: Session, types: set[str]) -> Iterator[Finding]:
    for kind, what in CATALOG.items():
        if kind not in types:
            yield Finding(
                "catalog_lacks",
                Level.WARNING,
                "Keystone",
                f"Its catalog has no {kind}.",
                f"Clients don't find {what}.",
                (
                    f"openstack service create --name {kind} {kind} && "
                    f"openstack endpoint create {kind} public <URL of the API>",
                ),
            )
            continue
        url = str(session.get_endpoint(service_type=kind))
        problem = _problem(session, url)
        if problem is not None:
            yield Finding(
                "endpoint_dead",
                Level.WARNING,
                "Keystone",
                f"The catalog's {kind}, {url}, {problem}",
                f"Clients find {what} and can't reach them.",
                (f"systemctl restart micronova-api@{SERVED.get(kind, kind)}",),
            )


def _problem(session: Session, url: str) -> str | None:
    """Return why an API can't be used; None: it answers."""
    try:
        answer = session.get(url, authenticated=False, raise_exc=False, connect_retries=0)
    except ksa_exceptions.ClientException as error:
        return f"doesn't answer: {str(error).splitlines()[0]}"
    if answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    # Of a proxy that reaches nothing behind it, too.
    return f"answers {answer.status_code} {answer.reason}."


def _broken(code: str, group: str, what: str) -> Finding:
    why = "No request is authenticated."
    where = f"Keystone, [{group}]"
    return Finding(code, Level.BROKEN, where, what, why, (_LOGIN[code].format(group),))
