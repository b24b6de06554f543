"""The Image API's rules, under Glance's names and with its defaults."""

from __future__ import annotations

from web.policy import rule

_READER = "role:reader and project_id:%(project_id)s"
_MAY_SEE = (
    "role:reader and (project_id:%(project_id)s or project_id:%(member_id)s "
    "or 'community':%(visibility)s or 'public':%(visibility)s or 'shared':%(visibility)s)"
)
_MEMBER = "rule:context_is_admin or (role:member and project_id:%(project_id)s)"
_SHARED = (
    "rule:context_is_admin or role:reader and (project_id:%(project_id)s "
    "or project_id:%(member_id)s)"
)
_IMAGE = "/v2/images/{image_id}"

#: those that the compute API's old `/images` asks, too
PROXIED = frozenset(
    {"get_images", "get_image", "modify_image", "delete_image"}
    | {"publicize_image", "communitize_image"}
)

_METADEFS = "/v2/metadefs/namespaces"
_NAMESPACE = f"{_METADEFS}/{{namespace}}"
_SEE_NAMESPACE = (
    "rule:context_is_admin or (role:reader and (project_id:%(project_id)s "
    "or 'public':%(visibility)s))"
)
#: (rule, path, method, what) of metadata definitions
_READ_METADEFS = (
    ("get_metadef_namespace", _NAMESPACE, "GET", "See a namespace of metadata definitions."),
    ("get_metadef_object", f"{_NAMESPACE}/objects/{{object}}", "GET", "See an object."),
    ("get_metadef_objects", f"{_NAMESPACE}/objects", "GET", "List objects."),
    ("get_metadef_property", f"{_NAMESPACE}/properties/{{property}}", "GET", "See a property."),
    ("get_metadef_properties", f"{_NAMESPACE}/properties", "GET", "List properties."),
    ("get_metadef_tag", f"{_NAMESPACE}/tags/{{tag}}", "GET", "See a tag."),
    ("get_metadef_tags", f"{_NAMESPACE}/tags", "GET", "List tags."),
    (
        "get_metadef_resource_type",
        f"{_NAMESPACE}/resource_types",
        "GET",
        "See the resource types of a namespace.",
    ),
    (
        "list_metadef_resource_types",
        "/v2/metadefs/resource_types",
        "GET",
        "List resource types.",
    ),
)
_WRITE_METADEFS = (
    ("add_metadef_namespace", _METADEFS, "POST", "Make a namespace."),
    ("modify_metadef_namespace", _NAMESPACE, "PUT", "Change a namespace."),
    ("delete_metadef_namespace", _NAMESPACE, "DELETE", "Delete a namespace."),
    ("add_metadef_object", f"{_NAMESPACE}/objects", "POST", "Define an object."),
    ("modify_metadef_object", f"{_NAMESPACE}/objects/{{object}}", "PUT", "Change an object."),
    ("delete_metadef_object", f"{_NAMESPACE}/objects/{{object}}", "DELETE", "Remove an object."),
    ("add_metadef_property", f"{_NAMESPACE}/properties", "POST", "Define a property."),
    (
        "modify_metadef_property",
        f"{_NAMESPACE}/properties/{{property}}",
        "PUT",
        "Change a property.",
    ),
    (
        "remove_metadef_property",
        f"{_NAMESPACE}/properties/{{property}}",
        "DELETE",
        "Remove a property.",
    ),
    ("add_metadef_tag", f"{_NAMESPACE}/tags/{{tag}}", "POST", "Define a tag."),
    ("add_metadef_tags", f"{_NAMESPACE}/tags", "POST", "Define tags."),
    ("modify_metadef_tag", f"{_NAMESPACE}/tags/{{tag}}", "PUT", "Rename a tag."),
    ("delete_metadef_tag", f"{_NAMESPACE}/tags/{{tag}}", "DELETE", "Remove a tag."),
    ("delete_metadef_tags", f"{_NAMESPACE}/tags", "DELETE", "Remove all tags."),
    (
        "add_metadef_resource_type_association",
        f"{_NAMESPACE}/resource_types",
        "POST",
        "Have a resource type in a namespace.",
    ),
    (
        "remove_metadef_resource_type_association",
        f"{_NAMESPACE}/resource_types/{{resource_type}}",
        "DELETE",
        "Have a resource type in a namespace no more.",
    ),
)

RULES = (
    rule(
        "get_metadef_namespaces",
        f"rule:context_is_admin or ({_READER})",
        "List namespaces of metadata definitions.",
        ("GET", _METADEFS),
    ),
    *(
        rule(name, _SEE_NAMESPACE, what, (method, path))
        for name, path, method, what in _READ_METADEFS
    ),
    *(
        rule(name, "rule:context_is_admin", what, (method, path))
        for name, path, method, what in _WRITE_METADEFS
    ),
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
    rule("add_image", _MEMBER, "Make an image.", ("POST", "/v2/images")),
    rule(
        "modify_image",
        _MEMBER,
        "Change an image, its properties and its tags; import its data.",
        ("PATCH", _IMAGE),
        ("POST", f"{_IMAGE}/import"),
        ("PUT", f"{_IMAGE}/tags/{{tag}}"),
        ("DELETE", f"{_IMAGE}/tags/{{tag}}"),
    ),
    rule(
        "publicize_image",
        "rule:context_is_admin",
        "Let all projects see an image and list it.",
        ("POST", "/v2/images"),
        ("PATCH", _IMAGE),
    ),
    rule(
        "communitize_image",
        _MEMBER,
        "Let all projects see an image, which they list if they ask for it.",
        ("POST", "/v2/images"),
        ("PATCH", _IMAGE),
    ),
    rule(
        "upload_image",
        _MEMBER,
        "Send the data of an image.",
        ("PUT", f"{_IMAGE}/file"),
        ("PUT", f"{_IMAGE}/stage"),
    ),
    rule(
        "download_image",
        f"rule:context_is_admin or ({_MAY_SEE.replace('reader', 'member')})",
        "Download the data of an image.",
        ("GET", f"{_IMAGE}/file"),
    ),
    rule("delete_image", _MEMBER, "Delete an image of a project.", ("DELETE", _IMAGE)),
    rule(
        "deactivate",
        _MEMBER,
        "Let no servers be made of an image.",
        ("POST", f"{_IMAGE}/actions/deactivate"),
    ),
    rule(
        "reactivate",
        _MEMBER,
        "Let servers be made of an image again.",
        ("POST", f"{_IMAGE}/actions/reactivate"),
    ),
    rule("add_member", _MEMBER, "Share an image.", ("POST", f"{_IMAGE}/members")),
    rule(
        "delete_member",
        _MEMBER,
        "Share an image no more.",
        ("DELETE", f"{_IMAGE}/members/{{member_id}}"),
    ),
    rule(
        "get_member",
        _SHARED,
        "Show whom an image is shared with.",
        ("GET", f"{_IMAGE}/members/{{member_id}}"),
    ),
    rule(
        "get_members",
        _SHARED,
        "List whom an image is shared with.",
        ("GET", f"{_IMAGE}/members"),
    ),
    rule(
        "modify_member",
        "rule:context_is_admin or (role:member and project_id:%(member_id)s)",
        "Accept or reject an image.",
        ("PUT", f"{_IMAGE}/members/{{member_id}}"),
    ),
    rule(
        "tasks_api_access",
        "rule:context_is_admin",
        "List tasks, of which there are none.",
        ("GET", "/v2/tasks"),
    ),
)
