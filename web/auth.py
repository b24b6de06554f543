"""Token validation in front of a WSGI application, and the identity that it leaves there.

keystonemiddleware checks tokens, configured by its own options in `[keystone_authtoken]`. So any
Keystone works by configuration, the embedded one included.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from oslo_config import cfg
from oslo_utils import timeutils

from common import clock
from common.clients import direct
from web.proxies import client_address
from web.token_cache import TokenCache

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

GROUP = "keystone_authtoken"
CACHE_GROUP = "token_cache"
CACHE_OPTIONS = (
    cfg.IntOpt(
        "max_tokens",
        default=2000,
        min=1,
        max=1_000_000,
        help="How many validated tokens a process caches, about 2 KiB each, when no "
        "memcached_servers are set in [keystone_authtoken]. The oldest is evicted first; an "
        "evicted token costs one request to Keystone.",
    ),
)

RECENT_SECONDS = 5.0
"""How long a token that was checked is good without another look into the cache of tokens, which
takes keystonemiddleware half of what a small answer takes in all."""

_MOST_RECENT = 200
#: with one of these, which may end sooner, a request is checked each time
_OF_SERVICE = "HTTP_X_SERVICE_TOKEN"
_TOKENS = ("HTTP_X_AUTH_TOKEN", "HTTP_X_STORAGE_TOKEN", _OF_SERVICE)
_FOUND = ("keystone.token_info", "keystone.token_auth")
_TIMEOUT_SECONDS = 15
_CACHE_KEY = "micronova.token_cache"
_STATUS = "HTTP_X_IDENTITY_STATUS"
_SYSTEM_SCOPE = "HTTP_OPENSTACK_SYSTEM_SCOPE"
_NAMES = (
    "USER",
    "USER_ID",
    "USER_NAME",
    "USER_DOMAIN_ID",
    "USER_DOMAIN_NAME",
    "PROJECT_ID",
    "PROJECT_NAME",
    "PROJECT_DOMAIN_ID",
    "PROJECT_DOMAIN_NAME",
    "DOMAIN_ID",
    "DOMAIN_NAME",
    "TENANT",
    "TENANT_ID",
    "TENANT_NAME",
    "ROLE",
    "ROLES",
)
IDENTITY_VARIABLES = frozenset(
    {_STATUS, _SYSTEM_SCOPE, "HTTP_X_SERVICE_IDENTITY_STATUS"}
    | {"HTTP_X_IS_ADMIN_PROJECT", "HTTP_X_SERVICE_CATALOG"}
    | {f"HTTP_X_{name}" for name in _NAMES}
    | {f"HTTP_X_SERVICE_{name}" for name in _NAMES}
)
"""The environ variables that only the token check may set, never a client's headers."""


def register(conf: cfg.ConfigOpts) -> None:
    """Declare the options of the token check on `conf`."""
    # weighs 8 MiB, and the dashboard needs the names alone
    from keystonemiddleware import auth_token

    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    conf.register_opts(CACHE_OPTIONS, group=CACHE_GROUP)
    # keystonemiddleware has no timeout by default; it would block every thread of a service.
    conf.set_default("http_connect_timeout", _TIMEOUT_SECONDS, group=GROUP)


def protect(
    app: WSGIApplication,
    conf: cfg.ConfigOpts,
    *,
    anonymous: Callable[[str], bool] = lambda path: False,
    delay_auth_decision: bool = False,
    service_type: str | None = None,
    recent_seconds: float = RECENT_SECONDS,
    now: Callable[[], float] = time.monotonic,
) -> WSGIApplication:
    """Return `app` behind the token check that `[keystone_authtoken]` of `conf` configures.

    `anonymous` says which paths (PATH_INFO) are served without a token check, such as version
    documents. Elsewhere a request without a valid token is answered 401 with `WWW-Authenticate`,
    and 503 while Keystone can't be reached. With `delay_auth_decision` the application receives
    such requests, without any identity, and decides (an unreachable Keystone then looks like an
    invalid token). `service_type` is the type of `app` in the catalog; tokens of application
    credentials with access rules are refused without it. `recent_seconds`: for so long after a
    check another request with the same token is not checked; `now` measures that.
    """
    from keystonemiddleware import auth_token

    overrides: dict[str, Any] = {
        "oslo_config_config": conf,
        "delay_auth_decision": delay_auth_decision,
    }
    if service_type is not None:
        overrides["service_type"] = service_type
    cache: TokenCache[bytes] | None = None
    if not conf[GROUP].memcached_servers:
        cache = TokenCache(conf[CACHE_GROUP].max_tokens)
        overrides["cache"] = _CACHE_KEY
    # Where the application decides, what it answers is changed on the way back.
    caches = not delay_auth_decision and conf[GROUP].token_cache_time > 0
    seconds = min(recent_seconds, conf[GROUP].token_cache_time) if caches else 0.0
    recent: TokenCache[Mapping[str, Any]] = TokenCache(_MOST_RECENT, now)
    checked = _checking(auth_token.AuthProtocol)(_settle(app, recent, seconds), overrides)

    def guarded(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        for name in IDENTITY_VARIABLES.intersection(environ):
            del environ[name]
        if anonymous(environ.get("PATH_INFO", "")):
            return app(environ, start_response)
        found = recent.get(_key(environ)) if seconds else None
        if found is not None:
            environ.update(found)
            return app(environ, start_response)
        if cache is not None:
            environ[_CACHE_KEY] = cache
        answer: Iterable[bytes] = checked(environ, start_response)
        return answer

    return guarded


#: older types of a service, by which access rules may name it
_TYPES: Mapping[str, str] = {"volumev3": "block-storage", "volumev2": "block-storage"}


def _checking(kind: Any) -> Any:
    """Return keystonemiddleware's class of the token check, as it is used here.

    Its connections are direct. Access rules of application credentials are compared with the path
    below the mount point too: `/v2.1/servers`, wherever an API is mounted.
    """
    from keystonemiddleware.auth_token import InvalidToken

    class Checking(kind):  # type: ignore[misc]
        def _create_session(self, **options: Any) -> Any:
            return super()._create_session(session=direct.session(), **options)

        def validate_allowed_request(self, request: Any, token: Mapping[str, Any]) -> None:
            asked = _with_types(token)
            try:
                super().validate_allowed_request(request, asked)
            except InvalidToken:
                below = type(request)({**request.environ, "SCRIPT_NAME": ""})
                super().validate_allowed_request(below, asked)

    return Checking


def _with_types(token: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a token whose access rules name services by the types that are checked here."""
    credential = token.get("application_credential") or {}
    if not credential.get("access_rules"):
        return token
    rules = [
        {**rule, "service": _TYPES.get(rule["service"], rule["service"])}
        for rule in credential["access_rules"]
    ]
    return {**token, "application_credential": {**credential, "access_rules": rules}}


def _key(environ: Mapping[str, Any]) -> str:
    """Return what the tokens of a request are cached by: nothing that opens anything."""
    tokens = json.dumps([environ.get(name) for name in _TOKENS])
    return hashlib.sha256(tokens.encode()).hexdigest()


def _may_be_kept(token: Mapping[str, Any], seconds: float) -> bool:
    """Return whether the token holds for all requests of the next seconds.

    One with access rules holds for some paths only.
    """
    if (token.get("application_credential") or {}).get("access_rules"):
        return False
    ends = timeutils.parse_isotime(token["expires_at"])
    return (ends - clock.utcnow()).total_seconds() > seconds


def _settle(
    app: WSGIApplication, recent: TokenCache[Mapping[str, Any]], seconds: float
) -> WSGIApplication:
    """Return `app` behind a filter that corrects what keystonemiddleware leaves in the environ.

    keystonemiddleware stores None under names that don't apply, which WSGI forbids; and it writes
    the system scope of a service token over the user's. What it found is in ``recent`` for the
    seconds that follow.
    """

    def settled(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        for name in IDENTITY_VARIABLES.intersection(environ):
            if environ[name] is None:
                del environ[name]
        environ.pop(_SYSTEM_SCOPE, None)
        if environ.get(_STATUS) == "Confirmed":
            token = environ["keystone.token_info"]["token"]
            if token.get("system", {}).get("all"):
                environ[_SYSTEM_SCOPE] = "all"
            if seconds and _OF_SERVICE not in environ and _may_be_kept(token, seconds):
                names = (*IDENTITY_VARIABLES, *_FOUND)
                left = {name: environ[name] for name in names if name in environ}
                recent.set(_key(environ), left, seconds)
        return app(environ, start_response)

    return settled


_CONTEXT: Mapping[str, str] = {
    "user_id": "HTTP_X_USER_ID",
    "user_name": "HTTP_X_USER_NAME",
    "user_domain_id": "HTTP_X_USER_DOMAIN_ID",
    "user_domain_name": "HTTP_X_USER_DOMAIN_NAME",
    "project_id": "HTTP_X_PROJECT_ID",
    "project_name": "HTTP_X_PROJECT_NAME",
    "project_domain_id": "HTTP_X_PROJECT_DOMAIN_ID",
    "project_domain_name": "HTTP_X_PROJECT_DOMAIN_NAME",
    "domain_id": "HTTP_X_DOMAIN_ID",
    "domain_name": "HTTP_X_DOMAIN_NAME",
    "system_scope": _SYSTEM_SCOPE,
    "auth_token": "HTTP_X_AUTH_TOKEN",
}
_SERVICE_CONTEXT: Mapping[str, str] = {
    "service_user_id": "HTTP_X_SERVICE_USER_ID",
    "service_user_name": "HTTP_X_SERVICE_USER_NAME",
    "service_project_id": "HTTP_X_SERVICE_PROJECT_ID",
    "service_project_name": "HTTP_X_SERVICE_PROJECT_NAME",
}
_REQUEST: Mapping[str, str] = {
    "request_id": "openstack.request_id",
    "global_request_id": "openstack.global_request_id",
}


def context_from_environ(environ: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a RequestContext for a request that passed `protect`.

    Without a confirmed token only the request IDs are there, and no roles.
    """
    values = _present(environ, _REQUEST) | {"roles": [], "service_roles": []}
    address = client_address(environ)
    if address:
        values["remote_address"] = address
    if environ.get(_STATUS) != "Confirmed":
        return values | {"is_admin_project": False}
    values |= _present(environ, _CONTEXT)
    values["roles"] = _roles(environ.get("HTTP_X_ROLES"))
    # Without the header every project counts as one, as in oslo.context.
    values["is_admin_project"] = environ.get("HTTP_X_IS_ADMIN_PROJECT", "True") == "True"
    if environ.get("HTTP_X_SERVICE_IDENTITY_STATUS") == "Confirmed":
        values |= _present(environ, _SERVICE_CONTEXT)
        values["service_roles"] = _roles(environ.get("HTTP_X_SERVICE_ROLES"))
    return values


def _present(environ: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {key: environ[name] for key, name in names.items() if environ.get(name)}


def _roles(text: str | None) -> list[str]:
    return [role.strip() for role in text.split(",") if role.strip()] if text else []
