"""The plugin of ``openstack``: ``openstack micronova explain``, ``openstack micronova node``.

Entry points (see setup.cfg): ``openstack.cli.extension`` names this module, whose ``API_NAME``,
``API_VERSION_OPTION``, ``make_client`` and ``build_option_parser`` python-openstackclient reads;
the group ``openstack.micronova.v1`` names the commands, ``openstack.cli.server_show`` cliff's hook
of ``openstack server show``.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

import micronova  # noqa: F401  (puts the packages on the import path)

if TYPE_CHECKING:
    from cli.cloud import Cloud

API_NAME = "micronova"
API_VERSION_OPTION = "os_micronova_api_version"
API_VERSIONS = ("1",)
DEFAULT_API_VERSION = "1"

#: name in the group ``openstack.micronova.v1`` → class; setup.cfg repeats the names
COMMANDS = {
    "micronova_capacity": "cli.admin.schedule:ShowCapacity",
    "micronova_explain": "cli.explain:Explain",
    "micronova_node_disable": "cli.admin.node:DisableNode",
    "micronova_node_drain": "cli.admin.drain:DrainNode",
    "micronova_node_enable": "cli.admin.node:EnableNode",
    "micronova_node_list": "cli.admin.node:ListNodes",
    "micronova_schedule": "cli.admin.schedule:Schedule",
}
#: the same for hooks of python-openstackclient's commands, in a group each
HOOKS = {"openstack.cli.server_show": "cli.osc.server_show:ShownMove"}


def make_client(instance: Any) -> Cloud:
    """Return what the commands work with, over the connection that ``openstack`` made."""
    from cli.cloud import Cloud

    return Cloud(lambda: instance.sdk_connection)


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the plugin's global option."""
    parser.add_argument(
        "--os-micronova-api-version",
        metavar="<micronova-api-version>",
        default=os.environ.get("OS_MICRONOVA_API_VERSION", DEFAULT_API_VERSION),
        help="Version of micronova's own commands (Env: OS_MICRONOVA_API_VERSION)",
    )
    return parser


def __getattr__(name: str) -> Any:
    """Load a command class when ``openstack`` asks for it, not before."""
    from importlib import import_module

    for path in (*COMMANDS.values(), *HOOKS.values()):
        module, _, attribute = path.partition(":")
        if attribute == name:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
