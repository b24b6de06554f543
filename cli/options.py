"""The global options: those of ``openstack``, as a table.

They are declared here, not by the SDK's registration, because loading the SDK and every
authentication plugin takes longer than ``micronova --help`` may take as a whole. Their values go
to ``OpenStackConfig`` as they are; the OS_* variables and ``clouds.yaml`` are its own matter.
"""

from __future__ import annotations

import argparse
import os

_CLOUD = (
    ("--os-cloud", "cloud", "Cloud of clouds.yaml (Env: OS_CLOUD)"),
    ("--os-region-name", "region_name", "Region (Env: OS_REGION_NAME)"),
    ("--os-auth-type", "os_auth_type", "Authentication plugin (Env: OS_AUTH_TYPE)"),
    ("--os-auth-url", "os_auth_url", "Identity API (Env: OS_AUTH_URL)"),
    ("--os-username", "os_username", "User (Env: OS_USERNAME)"),
    ("--os-user-id", "os_user_id", "User by ID (Env: OS_USER_ID)"),
    ("--os-password", "os_password", "Password; better OS_PASSWORD, which other users can't see"),
    ("--os-token", "os_token", "Token; better OS_TOKEN, which other users can't see"),
    ("--os-project-name", "os_project_name", "Project (Env: OS_PROJECT_NAME)"),
    ("--os-project-id", "os_project_id", "Project by ID (Env: OS_PROJECT_ID)"),
    ("--os-user-domain-name", "os_user_domain_name", "Domain of the user"),
    ("--os-user-domain-id", "os_user_domain_id", "Domain of the user, by ID"),
    ("--os-project-domain-name", "os_project_domain_name", "Domain of the project"),
    ("--os-project-domain-id", "os_project_domain_id", "Domain of the project, by ID"),
    ("--os-domain-name", "os_domain_name", "Domain to act on"),
    ("--os-domain-id", "os_domain_id", "Domain to act on, by ID"),
    ("--os-default-domain", "default_domain", "Domain of users and projects without one"),
    ("--os-system-scope", "os_system_scope", "Act on the system: all"),
    (
        "--os-application-credential-id",
        "os_application_credential_id",
        "Application credential (Env: OS_APPLICATION_CREDENTIAL_ID)",
    ),
    (
        "--os-application-credential-name",
        "os_application_credential_name",
        "Application credential by name (Env: OS_APPLICATION_CREDENTIAL_NAME)",
    ),
    (
        "--os-application-credential-secret",
        "os_application_credential_secret",
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

_API_VERSIONS = (
    ("--os-compute-api-version", "os_compute_api_version", "Compute API microversion, e.g. 2.79"),
    ("--os-placement-api-version", "os_placement_api_version", "Placement API microversion"),
    ("--os-volume-api-version", "os_volume_api_version", "Block Storage API microversion"),
)

NAMES = (*(name for _, name, _ in _CLOUD + _API_VERSIONS), "interface", "verify", "insecure")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the options to the program's parser."""
    group = parser.add_argument_group("cloud")
    for option, name, text in _CLOUD:
        group.add_argument(option, dest=name, metavar=f"<{option[5:]}>", help=text)
    for option, name, text in _API_VERSIONS:
        group.add_argument(
            option,
            dest=name,
            metavar=f"<{option[5:]}>",
            default=os.environ.get(name.upper()) or None,
            help=f"{text} (default: the newest that both sides know; Env: {name.upper()})",
        )
    group.add_argument(
        "--os-interface",
        dest="interface",
        choices=("admin", "public", "internal"),
        help="Which of the catalog's endpoints (Env: OS_INTERFACE)",
    )
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


def given(options: argparse.Namespace) -> argparse.Namespace:
    """Return only the options that were given: what is absent is left to ``clouds.yaml``."""
    values = {name: getattr(options, name, None) for name in NAMES}
    return argparse.Namespace(**{name: v for name, v in values.items() if v is not None})
