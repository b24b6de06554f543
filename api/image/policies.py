"""The Image API's rules, under Glance's names and with its defaults.

Only what users made of their servers can be changed, that is deleted.
"""

from __future__ import annotations

from web.policy import rule

_READER = "role:reader and project_id:%(project_id)s"
_MAY_SEE = (
    "role:reader and (project_id:%(project_id)s or project_id:%(member_id)s "
    "or 'community':%(visibility)s or 'public':%(visibility)s or 'shared':%(visibility)s)"
)

RULES = (
    rule(
        "get_images",
        f"rule:context_is_admin or ({_READER})",
        "List images.",
        ("GET", "/v2/images"),
    ),
    rule(
        "get_image",
        f"rule:context_is_admin or ({_MAY_SEE})",
        "Show an image.",
        ("GET", "/v2/images/{image_id}"),
    ),
    rule(
        "delete_image",
        "rule:context_is_admin or (role:member and project_id:%(project_id)s)",
        "Delete an image of a server.",
        ("DELETE", "/v2/images/{image_id}"),
    ),
)
