"""Who asks: token validation in front of a WSGI application, and the services' own credentials.

Tokens are checked by keystonemiddleware, configured by its ordinary options in
`[keystone_authtoken]`; the services log in with keystoneauth1's ordinary options in groups of
their own. So any Keystone works by configuration, the embedded one included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import requests
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import loading
from keystoneauth1 import session as ksa_session
from keystonemiddleware import auth_token
from oslo_config import cfg

from common.errors import ConfigurationError
from common.token_cache import TokenCache

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
        help="How many validated tokens a process keeps, some 2 KiB each, when no "
        "memcached_servers are set in [keystone_authtoken]. The oldest goes first; a token that "
        "is gone costs one request to Keystone.",
    ),
)

CONNECTIONS = 32
"""Connections a service session keeps open to one host: one for each thread of a service."""

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
    for group, options in auth_token.list_opts():
        conf.register_opts(options, group=group)
    conf.register_opts(CACHE_OPTIONS, group=CACHE_GROUP)
    # keystonemiddleware waits for ever by default, and every thread of a service with it.
    conf.set_default("http_connect_timeout", _TIMEOUT_SECONDS, group=GROUP)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options of the token check for the sample configuration."""
    return [*auth_token.list_opts(), (CACHE_GROUP, list(CACHE_OPTIONS))]


def protect(
    app: WSGIApplication,
    conf: cfg.ConfigOpts,
    *,
    anonymous: Callable[[str], bool] = lambda path: False,
    delay_auth_decision: bool = False,
    service_type: str | None = None,
) -> WSGIApplication:
    """Return `app` behind the token check that `[keystone_authtoken]` of `conf` configures.

    `anonymous` names the paths (PATH_INFO) that are served without a look at any token, such as
    version documents. Elsewhere a request without a valid token is answered 401 with
    `WWW-Authenticate`, and 503 while Keystone can't be reached. With `delay_auth_decision` the
    application sees such requests, without any identity, and decides (Keystone out of reach
    then looks like a wrong token). `service_type` is what `app` is in the catalog; tokens of
    application credentials with access rules are refused without it.
    """
    overrides: dict[str, Any] = {
        "oslo_config_config": conf,
        "delay_auth_decision": delay_auth_decision,
    }
    if service_type is not None:
        overrides["service_type"] = service_type
    cache = None
    if not conf[GROUP].memcached_servers:
        cache = TokenCache(conf[CACHE_GROUP].max_tokens)
        overrides["cache"] = _CACHE_KEY
    checked = auth_token.AuthProtocol(_settle(app), overrides)

    def door(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        for name in IDENTITY_VARIABLES.intersection(environ):
            del environ[name]
        if anonymous(environ.get("PATH_INFO", "")):
            return app(environ, start_response)
        if cache is not None:
            environ[_CACHE_KEY] = cache
        answer: Iterable[bytes] = checked(environ, start_response)
        return answer

    return door


def _settle(app: WSGIApplication) -> WSGIApplication:
    """Return `app` behind a filter that mends what keystonemiddleware leaves in the environ.

    It stores None under names that don't apply, which WSGI forbids; and it writes the system
    scope of a service token over the user's.
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
    if environ.get(_STATUS) != "Confirmed":
        return values | {"is_admin_project": False}
    values |= _present(environ, _CONTEXT)
    values["roles"] = _roles(environ.get("HTTP_X_ROLES"))
    # Without the statement every project counts, as oslo.context has it.
    values["is_admin_project"] = environ.get("HTTP_X_IS_ADMIN_PROJECT", "True") == "True"
    if environ.get("HTTP_X_SERVICE_IDENTITY_STATUS") == "Confirmed":
        values |= _present(environ, _SERVICE_CONTEXT)
        values["service_roles"] = _roles(environ.get("HTTP_X_SERVICE_ROLES"))
    return values


def _present(environ: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {key: environ[name] for key, name in names.items() if environ.get(name)}


def _roles(text: str | None) -> list[str]:
    return [role.strip() for role in text.split(",") if role.strip()] if text else []


def register_client(conf: cfg.ConfigOpts, group: str) -> None:
    """Declare on `conf` how a service logs in to, and finds, another one: all in `group`.

    These are keystoneauth1's options: `auth_type` and those of the plugin, session (`cafile`,
    `timeout` …) and adapter (`service_type`, `region_name`, `endpoint_override` …).
    """
    loading.register_auth_conf_options(conf, group)
    loading.register_session_conf_options(conf, group)
    loading.register_adapter_conf_options(conf, group)


def client_opts() -> list[cfg.Opt]:
    """Return the options of `register_client`, with those of passwords, for the sample."""
    plugin = loading.get_auth_plugin_conf_options("password")
    return [
        *loading.get_auth_common_conf_options(),
        *plugin,
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(),
    ]


def set_credentials(conf: cfg.ConfigOpts, group: str, values: Mapping[str, str]) -> None:
    """Make `values` the defaults of login options in `group`; a configuration file still wins.

    `values` is {option: value} and names `auth_type`. The embedded cloud hands its generated
    passwords over this way, so that they are in no second file.
    """
    loading.register_auth_conf_options(conf, group)
    conf.register_opts(loading.get_auth_plugin_conf_options(values["auth_type"]), group=group)
    for option, value in values.items():
        conf.set_default(option, value, group=group)


def service_session(conf: cfg.ConfigOpts, group: str) -> ksa_session.Session:
    """Return a session logged in as `group` of `conf` says; threads may share it.

    No request is made before the first use. Raises ConfigurationError when the options are
    incomplete.
    """
    try:
        plugin = loading.load_auth_from_conf_options(conf, group)
    except ksa_exceptions.AuthPluginException as error:
        raise ConfigurationError(f"[{group}] doesn't say how to log in: {error}") from error
    if plugin is None:
        raise ConfigurationError(f"[{group}] doesn't say how to log in: auth_type is not set.")
    return loading.load_session_from_conf_options(
        conf, group, auth=plugin, session=_pooled(CONNECTIONS)
    )


def adapter(
    conf: cfg.ConfigOpts, group: str, session: ksa_session.Session | None = None
) -> ksa_adapter.Adapter:
    """Return a client of the service that `group` of `conf` names.

    It uses `session`, or one of its own that logs in as the same group says.
    """
    return loading.load_adapter_from_conf_options(
        conf, group, session=session or service_session(conf, group)
    )


def _pooled(connections: int) -> requests.Session:
    session = requests.Session()
    for scheme in list(session.adapters):
        session.mount(scheme, ksa_session.TCPKeepAliveAdapter(pool_maxsize=connections))
    return session
