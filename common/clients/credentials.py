"""The services' own credentials: sessions and clients that log in to Keystone.

Services log in with keystoneauth1's own options, in one configuration group for each service that
they call.
"""

from __future__ import annotations

from collections.abc import Mapping

from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import loading
from keystoneauth1 import session as ksa_session
from oslo_config import cfg

from common.clients import direct
from common.errors import ConfigurationError

CONNECTIONS = 32
"""Connections that a session holds open to one host: one for each thread of a service."""


def register(conf: cfg.ConfigOpts, group: str) -> None:
    """Declare in `group` how a service logs in to another one and finds it.

    The options are keystoneauth1's: `auth_type`, the plugin's, the session's (`cafile`,
    `timeout` …) and the adapter's (`service_type`, `region_name`, `endpoint_override` …).
    """
    loading.register_auth_conf_options(conf, group)
    loading.register_session_conf_options(conf, group)
    loading.register_adapter_conf_options(conf, group)


def set_defaults(conf: cfg.ConfigOpts, group: str, values: Mapping[str, str]) -> None:
    """Set the defaults of login options in `group`; a configuration file overrides them.

    `values` is {option: value} and includes `auth_type`. The embedded cloud passes its generated
    passwords this way, so that no second file holds them.
    """
    loading.register_auth_conf_options(conf, group)
    conf.register_opts(loading.get_auth_plugin_conf_options(values["auth_type"]), group=group)
    for option, value in values.items():
        conf.set_default(option, value, group=group)


def session(conf: cfg.ConfigOpts, group: str) -> ksa_session.Session:
    """Return a session with the login of `group`; threads may share it.

    It logs in at its first request. Raises ConfigurationError when options are missing.
    """
    try:
        plugin = loading.load_auth_from_conf_options(conf, group)
    except ksa_exceptions.AuthPluginException as error:
        raise ConfigurationError(f"[{group}] doesn't say how to log in: {error}") from error
    if plugin is None:
        raise ConfigurationError(f"[{group}] doesn't say how to log in: auth_type is not set.")
    return loading.load_session_from_conf_options(
        conf, group, auth=plugin, session=direct.session(CONNECTIONS)
    )


def adapter(
    conf: cfg.ConfigOpts, group: str, login: ksa_session.Session | None = None
) -> ksa_adapter.Adapter:
    """Return a client of the service that `group` describes.

    It uses `login`, or a session of its own with the login of the same group.
    """
    return loading.load_adapter_from_conf_options(
        conf, group, session=login or session(conf, group)
    )
