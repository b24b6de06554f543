"""The global options: those of ``openstack``, as a table.

They are declared here, not by the SDK's registration, because loading the SDK and every
authentication plugin takes longer than ``micronova --help`` may take as a whole. What they mean
is osc-lib's matter (``cli.cloud``): an option counts before its OS_* variable, and both before
what ``clouds.yaml`` has of the cloud.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

_CLOUD = (
    ("--os-cloud", "cloud", "Cloud of clouds.yaml (Env: OS_CLOUD)"),
    ("--os-region-name", "region_name", "Region (Env: OS_REGION_NAME)"),
    ("--os-auth-type", "auth_type", "Authentication plugin (Env: OS_AUTH_TYPE)"),
    ("--os-auth-url", "auth_url", "Identity API (Env: OS_AUTH_URL)"),
    ("--os-username", "username", "User (Env: OS_USERNAME)"),
    ("--os-user-id", "user_id", "User by ID (Env: OS_USER_ID)"),
    ("--os-password", "password", "Password; better OS_PASSWORD, which other users can't see"),
    ("--os-token", "token", "Token; better OS_TOKEN, which other users can't see"),
    ("--os-project-name", "project_name", "Project (Env: OS_PROJECT_NAME)"),
    ("--os-project-id", "project_id", "Project by ID (Env: OS_PROJECT_ID)"),
    ("--os-user-domain-name", "user_domain_name", "Domain of the user"),
    ("--os-user-domain-id", "user_domain_id", "Domain of the user, by ID"),
    ("--os-project-domain-name", "project_domain_name", "Domain of the project"),
    ("--os-project-domain-id", "project_domain_id", "Domain of the project, by ID"),
    ("--os-domain-name", "domain_name", "Domain to act on"),
    ("--os-domain-id", "domain_id", "Domain to act on, by ID"),
    ("--os-default-domain", "default_domain", "Domain of users and projects without one"),
    ("--os-system-scope", "system_scope", "Act on the system: all"),
    (
        "--os-application-credential-id",
        "application_credential_id",
        "Application credential (Env: OS_APPLICATION_CREDENTIAL_ID)",
    ),
    (
        "--os-application-credential-name",
        "application_credential_name",
        "Application credential by name (Env: OS_APPLICATION_CREDENTIAL_NAME)",
    ),
    (
        "--os-application-credential-secret",
        "application_credential_secret",
        "Its secret; better OS_APPLICATION_CREDENTIAL_SECRET, which other users can't see",
    ),
    (
        "--os-compute-endpoint-override",
        "os_compute_endpoint_override",
        "Compute API, in place of the catalog's",
    ),
    ("--os-cacert", "cacert", "File of the certificates to trust (Env: OS_CACERT)"),
    ("--os-cert", "cert", "File of the client's certificate (Env: OS_CERT)"),
    ("--os-key", "key", "File of the client's key (Env: OS_KEY)"),
)

#: options of authentication plugins that few use: known, but not in the help
_OF_PLUGINS = (
    *("access-key", "access-secret", "access-token", "access-token-endpoint"),
    *("access-token-type", "auth-methods", "client-id", "client-secret", "code"),
    *("code-challenge-method", "consumer-key", "consumer-secret", "default-domain-id"),
    *("default-domain-name", "device-authorization-endpoint", "discovery-endpoint", "endpoint"),
    *("identity-provider", "idp-otp-key", "login-timeout", "oauth2-client-id"),
    *("oauth2-client-secret", "oauth2-endpoint", "openid-scope", "passcode", "protocol"),
    *("redirect-host", "redirect-port", "redirect-uri", "trust-id"),
    *("service-provider", "remote-project-name", "remote-project-id"),
    *("remote-project-domain-name", "remote-project-domain-id"),
)

_API_VERSIONS = (
    ("--os-compute-api-version", "os_compute_api_version", "Compute API microversion, e.g. 2.79"),
    ("--os-placement-api-version", "os_placement_api_version", "Placement API microversion"),
    ("--os-volume-api-version", "os_volume_api_version", "Block Storage API microversion"),
)
#: versions of APIs that have one: known for the sake of scripts, but not in the help
_OTHER_API_VERSIONS = (*("accelerator", "identity", "image", "network", "object"),)
_TENANT = ("project_id", "project_name")

NAMES = (
    *(name for _, name, _ in _CLOUD + _API_VERSIONS),
    *(option.replace("-", "_") for option in _OF_PLUGINS),
    *(f"os_{api}_api_version" for api in _OTHER_API_VERSIONS),
    "interface",
)
_CHECKS = ("verify", "insecure")


def _seconds(text: str) -> float:
    """Return a positive number."""
    number = float(text)
    if not 0 < number <= 3600:
        raise argparse.ArgumentTypeError("more than 0, and 3600 at most")
    return number


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options to the program's parser."""
    group = parser.add_argument_group("cloud")
    for option, name, text in _CLOUD:
        group.add_argument(option, dest=name, metavar=f"<{option[5:]}>", help=text)
    group.add_argument(
        "--all-regions",
        action="store_true",
        help="Look at all regions of the catalog at once, with a column for the region "
        "(commands that list or show)",
    )
    group.add_argument(
        "--region-seconds",
        metavar="<seconds>",
        type=_seconds,
        default=20.0,
        help="How long a region may take to answer with --all-regions (default: 20)",
    )
    for option, name, text in _API_VERSIONS:
        group.add_argument(
            option,
            dest=name,
            metavar=f"<{option[5:]}>",
            help=f"{text} (default: the newest that both sides know; Env: {name.upper()})",
        )
    for option in _OF_PLUGINS:
        group.add_argument(f"--os-{option}", dest=option.replace("-", "_"), help=argparse.SUPPRESS)
    for api in _OTHER_API_VERSIONS:
        group.add_argument(f"--os-{api}-api-version", help=argparse.SUPPRESS)
    for name in _TENANT:
        old = name.replace("project", "tenant")
        group.add_argument(
            f"--os-{old.replace('_', '-')}", dest=f"os_{name}", help=argparse.SUPPRESS
        )
    group.add_argument(
        "--os-interface",
        dest="interface",
        choices=("admin", "public", "internal"),
        help="Which of the catalog's endpoints (Env: OS_INTERFACE)",
    )
    group.add_argument("--os-beta-command", action="store_true", help=argparse.SUPPRESS)
    # options of the parser itself: argparse can't nest an exclusive group in a named one
    checks = parser.add_mutually_exclusive_group()
    checks.add_argument(
        "--verify",
        action="store_true",
        default=None,
        help="Check the server's certificate (default)",
    )
    checks.add_argument(
        "--insecure", action="store_true", default=None, help="Trust any certificate"
    )


def given(options: argparse.Namespace, environ: Mapping[str, str]) -> argparse.Namespace:
    """Return the options that were given, else those of the environment, as osc-lib reads them.

    What is absent is left to ``clouds.yaml``.
    """
    values = {name: getattr(options, name, None) for name in (*NAMES, *_CHECKS)}
    for name in NAMES:
        variable = f"OS_{name.removeprefix('os_').upper()}"
        values[name] = values[name] or environ.get(variable)
    for name in _TENANT:
        old = name.replace("project", "tenant")
        tenant = getattr(options, f"os_{name}", None)
        values[name] = tenant or values[name] or environ.get(f"OS_{old.upper()}")
        # openstacksdk has a project under both names, and takes whichever is given here
        values[old] = values[name]
    return argparse.Namespace(**{name: v for name, v in values.items() if v not in (None, "")})
