"""The Image API's rules, under Glance's names and with its defaults."""

from __future__ import annotations

from web.policy import ADMIN, rules

_READER = "role:reader and project_id:%(project_id)s"
_MAY_SEE = (
    "role:reader and (project_id:%(project_id)s or project_id:%(member_id)s "
    "or 'community':%(visibility)s or 'public':%(visibility)s or 'shared':%(visibility)s)"
)
_MEMBER = f"{ADMIN} or (role:member and project_id:%(project_id)s)"
_SHARED = f"{ADMIN} or role:reader and (project_id:%(project_id)s or project_id:%(member_id)s)"
#: those that the compute API's old `/images` asks, too
PROXIED = frozenset(
    {"get_images", "get_image", "modify_image", "delete_image"}
    | {"publicize_image", "communitize_image"}
)

_SEE_NAMESPACE = (
    f"{ADMIN} or (role:reader and (project_id:%(project_id)s or 'public':%(visibility)s))"
)

_ROWS = {
    f"{ADMIN} or ({_READER})": {
        "get_metadef_namespaces": "List namespaces of metadata definitions.",
        "get_images": "List images.",
    },
    _SEE_NAMESPACE: {
        "get_metadef_namespace": "See a namespace of metadata definitions.",
        "get_metadef_object": "See an object.",
        "get_metadef_objects": "List objects.",
        "get_metadef_property": "See a property.",
        "get_metadef_properties": "List properties.",
        "get_metadef_tag": "See a tag.",
        "get_metadef_tags": "List tags.",
        "get_metadef_resource_type": "See the resource types of a namespace.",
        "list_metadef_resource_types": "List resource types.",
    },
    ADMIN: {
        "add_metadef_namespace": "Make a namespace.",
        "modify_metadef_namespace": "Change a namespace.",
        "delete_metadef_namespace": "Delete a namespace.",
        "add_metadef_object": "Define an object.",
        "modify_metadef_object": "Change an object.",
        "delete_metadef_object": "Remove an object.",
        "add_metadef_property": "Define a property.",
        "modify_metadef_property": "Change a property.",
        "remove_metadef_property": "Remove a property.",
        "add_metadef_tag": "Define a tag.",
        "add_metadef_tags": "Define tags.",
        "modify_metadef_tag": "Rename a tag.",
        "delete_metadef_tag": "Remove a tag.",
        "delete_metadef_tags": "Remove all tags.",
        "add_metadef_resource_type_association": "Have a resource type in a namespace.",
        "remove_metadef_resource_type_association": "Have a resource type in a namespace no more.",
        "publicize_image": "Let all projects see an image and list it.",
        "tasks_api_access": "List tasks. The list is empty.",
    },
    f"{ADMIN} or ({_MAY_SEE})": {
        "get_image": "Show an image.",
    },
    _MEMBER: {
        "add_image": "Make an image.",
        "modify_image": "Change an image, its properties and its tags; import its data.",
        "communitize_image": "Let all projects see an image, which they list if they ask for it.",
        "upload_image": "Send the data of an image.",
        "delete_image": "Delete an image of a project.",
        "deactivate": "Let no servers be made of an image.",
        "reactivate": "Let servers be made of an image again.",
        "add_member": "Share an image.",
        "delete_member": "Share an image no more.",
    },
    f"{ADMIN} or ({_MAY_SEE.replace('reader', 'member')})": {
        "download_image": "Download the data of an image.",
    },
    _SHARED: {
        "get_member": "Show whom an image is shared with.",
        "get_members": "List whom an image is shared with.",
    },
    f"{ADMIN} or (role:member and project_id:%(member_id)s)": {
        "modify_member": "Accept or reject an image.",
    },
}

RULES = rules(_ROWS)
