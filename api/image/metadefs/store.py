"""The namespaces of metadata definitions that a user may see: built in, and written."""

from __future__ import annotations

from collections.abc import Mapping

from api.image.metadefs import catalog as metadef_catalog
from api.image.store import Store
from common.context import RequestContext
from common.errors import Forbidden, NotFound
from db.reading import reading
from db.reads.images import metadefs as reads
from db.reads.images.metadefs import Namespace


class Definitions:
    """The namespaces that a user may see, and what the policy lets the user do."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def all(self, ctxt: RequestContext) -> list[Namespace]:
        """Return the namespaces that the user sees."""
        with reading(self.store.engine) as connection:
            written = reads.read(connection)
        return [one for one in (*metadef_catalog.namespaces(), *written) if self._sees(ctxt, one)]

    def find(self, ctxt: RequestContext, name: str) -> Namespace:
        """Return a namespace. Raises NotFound, also where the policy hides it."""
        found = metadef_catalog.find(name)
        if found is None:
            with reading(self.store.engine) as connection:
                found = next(iter(reads.read(connection, name)), None)
        if found is None or not self._sees(ctxt, found):
            raise NotFound(f"Metadata definition namespace={name} was not found.")
        return found

    def check(self, ctxt: RequestContext, found: Namespace, *rules: str) -> None:
        """Raise Forbidden unless the policy allows all of these."""
        for rule in rules:
            self.store.policy.check(ctxt, rule, _target(found))

    def changeable(self, ctxt: RequestContext, name: str, *rules: str) -> Namespace:
        """Return a namespace that the user may do this to. Raises NotFound, Forbidden."""
        found = self.find(ctxt, name)
        self.check(ctxt, found, *rules)
        require_written(name)
        return found

    def shows(self, ctxt: RequestContext, found: Namespace, rule: str) -> bool:
        """Return whether the policy shows something of a namespace."""
        return self.store.policy.allows(ctxt, rule, _target(found))

    def _sees(self, ctxt: RequestContext, found: Namespace) -> bool:
        return self.shows(ctxt, found, "get_metadef_namespace")


def _target(found: Namespace) -> Mapping[str, str]:
    return {"project_id": found.project_id, "visibility": found.visibility}


def require_written(name: str) -> None:
    """Raise Forbidden for a namespace that is built in."""
    if metadef_catalog.find(name) is not None:
        raise Forbidden(
            f"Metadata definition namespace {name} is protected: it says what this cloud "
            "understands."
        )
