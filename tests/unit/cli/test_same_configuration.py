"""Options, variables and ``clouds.yaml`` mean to ``micronova`` what they mean to ``openstack``.

Both programs resolve the same words and environment, and the configurations are compared.
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from typing import Any

import pytest

from cli import options
from cli.cloud import config_of, connect
from cli.errors import CommandFailed
from cli.main import Program
from common.clients.paths import Session

with warnings.catch_warnings():
    # its own modules' deprecations
    warnings.simplefilter("ignore")
    from openstackclient.shell import OpenStackShell
    from osc_lib.api import auth

# plugins' options and the SDK's own future
pytestmark = pytest.mark.filterwarnings("ignore")

CLOUDS = """
clouds:
  one:
    auth: {auth_url: "http://one/v3", username: u1, password: p1, project_name: j1,
           user_domain_name: Default, project_domain_name: Default}
    region_name: r1
    interface: internal
    cacert: /one.pem
    compute_api_version: "2.50"
  two:
    auth_type: v3applicationcredential
    auth: {auth_url: "http://two/v3", application_credential_id: a2,
           application_credential_secret: s2}
"""
#: what isn't about a cloud, or of plugins that happen to be installed with the tests
_NOT_OURS = {"--os-profile", "--os-micronova-api-version", "--os-share-api-version"}
_NOT_OURS |= {"--os-endpoint-override", "--os-beta-command"}


#: what openstack asks for unless something else is said, where we take the newest
_OLDEST_PLACEMENT = "1"


class _Resolved(BaseException):
    """The configuration is resolved: nothing else of the shell is wanted."""


class Theirs(OpenStackShell):
    """``openstack``, up to the configuration."""

    def _load_plugins(self) -> None:
        raise _Resolved


def theirs(argv: list[str]) -> dict[str, Any]:
    shell = Theirs()
    with pytest.raises(_Resolved):
        shell.run([*argv, "token", "issue"])
    return of_the_cloud(shell.cloud.config)


def ours(argv: list[str]) -> dict[str, Any]:
    parsed = Program().parser.parse_args(argv)
    return of_the_cloud(config_of(options.given(parsed, os.environ), "0").config)


def of_the_cloud(config: dict[str, Any]) -> dict[str, Any]:
    """What a configuration says of the cloud, without what both programs add for themselves."""
    names = {name.removeprefix("os_") for name in options.NAMES} | {"auth", "verify", "insecure"}
    names -= {"compute_endpoint_override"}
    found = {name: value for name, value in config.items() if name in names and value}
    if found.get("placement_api_version") == _OLDEST_PLACEMENT:
        del found["placement_api_version"]
    return found


def os_options() -> list[argparse.Action]:
    """Every ``--os-…`` of openstack that is about a cloud."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        actions = OpenStackShell().parser._actions
    found = [
        action
        for action in actions
        if any(word.startswith("--os-") for word in action.option_strings)
    ]
    return [one for one in found if not _NOT_OURS & set(one.option_strings)]


OPTIONS = {action.option_strings[-1]: action for action in os_options()}


@pytest.fixture(autouse=True)
def clouds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clouds in a file, and an environment without variables."""
    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "clouds.yaml").write_text(CLOUDS)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))


def value_of(option: str) -> str:
    """A value that the option takes."""
    action = OPTIONS[option]
    known = {
        "--os-cloud": "two",
        "--os-region-name": "r1",
        "--os-auth-type": "v3token",
        "--os-interface": "admin",
    }
    return known.get(option) or str(next(iter(action.choices or ["2"])))


@pytest.mark.parametrize("cloud", ["one", "two", None])
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_means_the_same(
    option: str, cloud: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cloud:
        monkeypatch.setenv("OS_CLOUD", cloud)
    argv = [option, value_of(option)]
    assert ours(argv) == theirs(argv)


@pytest.mark.parametrize("cloud", ["one", "two", None])
@pytest.mark.parametrize("option", OPTIONS)
def test_a_variable_means_the_same(
    option: str, cloud: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cloud:
        monkeypatch.setenv("OS_CLOUD", cloud)
    variable = option.removeprefix("--").upper().replace("-", "_")
    monkeypatch.setenv(variable, value_of(option))
    assert ours([]) == theirs([])


ELSEWHERE = {
    "OS_AUTH_URL": "http://two/v3",
    "OS_USERNAME": "u2",
    "OS_PASSWORD": "p2",
    "OS_PROJECT_NAME": "j2",
}


def test_options_and_variables_win_over_the_named_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_CLOUD", "one")
    words = [
        *("--os-auth-url", "http://two/v3", "--os-username", "u2"),
        *("--os-password", "p2", "--os-project-name", "j2"),
    ]
    found = ours(words)
    assert found == theirs(words)
    assert asked_of(words) == ("http://two/v3", "u2", "p2", "j2")
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    assert ours([]) == theirs([])
    assert asked_of([]) == ("http://two/v3", "u2", "p2", "j2")
    last = ["--os-username", "u3", "--os-cloud", "one"]
    assert ours(last) == theirs(last)
    assert asked_of(last) == ("http://two/v3", "u3", "p2", "j2")


def asked_of(argv: list[str]) -> tuple[str, ...]:
    """Where a connection would log in, as whom, with which password, for which project."""
    parsed = Program().parser.parse_args(argv)
    plugin = connect(options.given(parsed, os.environ), "0").session.auth
    return plugin.auth_url, plugin._username, plugin._password, plugin._project_name


def test_flags_and_variables_without_a_cloud(monkeypatch: pytest.MonkeyPatch) -> None:
    for argv in (["--insecure"], ["--verify"], ["--os-token", "t", "--os-endpoint", "http://x"]):
        assert ours(argv) == theirs(argv), argv
    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    assert ours([]) == theirs([])
    monkeypatch.setenv("OS_TENANT_NAME", "old")
    assert ours([]) == theirs([])
    monkeypatch.delenv("OS_PROJECT_NAME")
    assert ours([])["auth"]["project_name"] == theirs([])["auth"]["project_name"] == "old"


def test_every_option_of_openstack_is_known() -> None:
    parser = Program().parser
    words = {word for action in parser._actions for word in action.option_strings}
    assert OPTIONS.keys() <= words
    assert {f"--os-{name}" for name in auth.get_options_list()} <= words


def test_a_connection_is_of_the_cloud_that_the_options_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OS_CLOUD", "one")
    parsed = Program().parser.parse_args(["--os-auth-url", "http://two/v3"])
    connection = connect(options.given(parsed, os.environ), "0")
    assert connection.session.auth.auth_url == "http://two/v3"
    assert type(connection.session) is Session
    remote = ["--os-service-provider", "sp", "--os-remote-project-name", "j"]
    parsed = Program().parser.parse_args(remote)
    auth_plugin = connect(options.given(parsed, os.environ), "0").session.auth
    assert type(auth_plugin).__name__ == "Keystone2Keystone"
    monkeypatch.delenv("OS_CLOUD")
    with pytest.raises(CommandFailed, match="No cloud to talk to"):
        connect(options.given(Program().parser.parse_args([]), os.environ), "0")
