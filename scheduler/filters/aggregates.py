"""What the metadata of a host's aggregates allows: flavors, images, projects."""

from __future__ import annotations

from common.messages.scheduling import Requested
from scheduler.columnar import by
from scheduler.filters.specs import compiled
from scheduler.memberships import Memberships, of

SCOPE = "aggregate_instance_extra_specs:"


@by(of)
def aggregate_instance_extra_specs(memberships: Memberships, request: Requested) -> str | None:
    """Refuse hosts whose aggregates' metadata isn't what the flavor's extra specs ask.

    Counts what begins with `aggregate_instance_extra_specs:`; a value may begin with one of
    Nova's operators (`>= 5`, `<or> a <or> b`, `<in> x` …).
    """
    for key, wanted in request.extra_specs.items():
        if not key.startswith(SCOPE):
            continue
        name = key.removeprefix(SCOPE)
        there = memberships.metadata.get(name, frozenset())
        if not any(map(compiled(wanted), there)):
            shown = ", ".join(sorted(there)) or "nothing"
            return f"its aggregates say {shown} of {name}, the flavor asks {wanted}"
    return None


@by(of)
def aggregate_image_properties_isolation(
    memberships: Memberships, request: Requested
) -> str | None:
    """Refuse hosts whose aggregates name other values of an image's property."""
    for name, there in memberships.image_properties.items():
        wanted = request.image_properties.get(name)
        if wanted and wanted not in there:
            shown = ", ".join(sorted(there))
            return f"its aggregates take images with {name} {shown}, this one has {wanted}"
    return None


@by(of)
def aggregate_multitenancy_isolation(memberships: Memberships, request: Requested) -> str | None:
    """Refuse hosts that aggregates keep for other projects (`filter_tenant_id…`)."""
    projects = memberships.projects
    if not projects or request.project_id in projects:
        return None
    return "kept for other projects by an aggregate"
