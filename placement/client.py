"""The client of placement for the other services: its REST API, through keystoneauth1.

It works with this service and with OpenStack Placement (Ussuri or newer). Every method says how
many HTTP requests it makes. All raise Unavailable when placement, or Keystone on the
way to it, doesn't answer; Forbidden when the service's own credentials don't suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any
from urllib.parse import urlencode

from keystoneauth1 import adapter as ksa_adapter

from common.errors import Conflict, GenerationConflict, Invalid, NotFound
from placement import messages
from placement.bodies import allocations, same_inventories
from placement.messages import (
    Allocations,
    Candidates,
    Claimed,
    First,
    Memberships,
    NewClaim,
    NewProvider,
    Provider,
    Replacement,
    Resources,
)
from placement.transport import ATTEMPTS, Transport, until_undisturbed

#: this project's placement only; OpenStack's has nothing there
_ALL_ALLOCATIONS = "/micronova/allocations"
_NEW_PROVIDERS = "/micronova/resource_providers"
_COLUMNS = "/micronova/allocation_candidates"


class PlacementClient:
    """Placement, through an adapter of `common.clients.credentials.adapter(conf, "placement")`.

    Threads may share it; connections are kept open. The request ID of the thread's current
    context is sent as the global request ID.
    """

    def __init__(self, adapter: ksa_adapter.Adapter) -> None:
        self._call = Transport(adapter).call
        self._is_ours = True
        """Until an answer shows that it is OpenStack's placement."""
        self.on_freed: Callable[[], None] = _nothing
        """Called once allocations were deleted or replaced."""

    # --- providers ---

    def ping(self) -> None:
        """Ask for its versions. Raises Unavailable when it doesn't answer."""
        self._call("GET", "/")

    def providers(self, name: str | None = None, trait: str | None = None) -> list[Provider]:
        """Return all providers, or the one of that name, or those with a trait. 1 request.

        Raises Invalid for an unknown trait.
        """
        asked = {"name": name, "required": trait}
        query = urlencode({key: value for key, value in asked.items() if value})
        query = query and f"?{query}"
        found = self._call("GET", f"/resource_providers{query}")
        return [messages.provider(one) for one in found["resource_providers"]]

    def ensure_provider(self, uuid: str, name: str) -> Provider:
        """Return the provider, created or renamed if need be. 1 request, 2 for a change.

        Raises Conflict when another provider has that name.
        """
        try:
            found = messages.provider(self._call("GET", f"/resource_providers/{uuid}"))
        except NotFound:
            body = {"uuid": uuid, "name": name}
            return messages.provider(self._call("POST", "/resource_providers", body))
        if found.name == name:
            return found
        return messages.provider(self._call("PUT", f"/resource_providers/{uuid}", {"name": name}))

    def delete_provider(self, uuid: str) -> None:
        """Delete a provider; do nothing if it doesn't exist. 1 request.

        Raises Conflict while it has allocations.
        """
        self._absent_is_fine("DELETE", f"/resource_providers/{uuid}")

    def ensure_resource_class(self, name: str) -> None:
        """Make sure that a custom resource class exists. 1 request."""
        self._call("PUT", f"/resource_classes/{name}")

    def add_provider(
        self,
        uuid: str,
        name: str,
        inventories: Mapping[str, Mapping[str, Any]],
        traits: Iterable[str],
    ) -> None:
        """Create a provider with its inventories and traits. 3 requests.

        1 more for each custom trait that is not known yet, and another try. Raises Conflict when
        another provider has that name or UUID, Invalid for an unknown class or trait.
        """
        made = messages.provider(
            self._call("POST", "/resource_providers", {"uuid": uuid, "name": name})
        )
        generation = self._put_inventories(uuid, inventories, made.generation)
        self._put_traits(uuid, set(traits), set(), generation)

    def add_providers(self, providers: Sequence[NewProvider]) -> frozenset[str] | None:
        """Create providers with all they have; return the UUIDs of those that were created.

        Those whose UUID or name is taken are left as they are. None: this placement can't do that
        (OpenStack's). 1 request for at most 500. Raises Invalid for an unknown class or trait.
        """
        body = [
            {**one._asdict(), "inventories": dict(one.inventories), "traits": sorted(one.traits)}
            for one in providers
        ]
        try:
            answer = self._call("POST", _NEW_PROVIDERS, {"resource_providers": body})
        except NotFound:
            return None
        return frozenset(answer["created"])

    def memberships(self, uuids: Sequence[str]) -> dict[str, Memberships] | None:
        """Return traits and aggregates of those of at most 500 providers that exist. 1 request.

        None: this placement can't do that (OpenStack's).
        """
        body = {"resource_providers": list(uuids)}
        try:
            answer = self._call("POST", f"{_NEW_PROVIDERS}/memberships", body)
        except NotFound:
            return None
        return {
            uuid: Memberships(frozenset(one["traits"]), frozenset(one["aggregates"]))
            for uuid, one in answer["resource_providers"].items()
        }

    def set_inventory(self, uuid: str, inventories: Mapping[str, Mapping[str, Any]]) -> bool:
        """Replace the provider's inventories; return whether that changed anything.

        `inventories` is {resource class: {"total": …, "reserved": …, "allocation_ratio": …,
        "min_unit": …, "max_unit": …, "step_size": …}}; what isn't named gets placement's
        default. 1 request when nothing changes, 2 otherwise. Raises NotFound; Conflict when an
        inventory that would go has allocations.
        """
        path = f"/resource_providers/{uuid}/inventories"

        def attempt() -> bool:
            now = self._call("GET", path)
            if same_inventories(now["inventories"], inventories):
                return False
            self._put_inventories(uuid, inventories, now["resource_provider_generation"])
            return True

        return until_undisturbed(attempt)

    def _put_inventories(
        self, uuid: str, inventories: Mapping[str, Mapping[str, Any]], generation: int
    ) -> int:
        """Replace the inventories of a provider; return its new generation. 1 request."""
        body = {"inventories": inventories, "resource_provider_generation": generation}
        answer = self._call("PUT", f"/resource_providers/{uuid}/inventories", body)
        return int(answer["resource_provider_generation"])

    def inventories(self, uuid: str) -> dict[str, dict[str, Any]]:
        """Return {resource class: inventory} of a provider. 1 request. Raises NotFound."""
        path = f"/resource_providers/{uuid}/inventories"
        found: dict[str, dict[str, Any]] = self._call("GET", path)["inventories"]
        return found

    def set_traits(self, uuid: str, traits: Iterable[str]) -> bool:
        """Replace the provider's traits; return whether that changed anything.

        1 request when nothing changes, 2 otherwise; 1 more for each custom trait that is not
        known yet, and another try. Raises NotFound, Invalid (no such trait).
        """
        wanted = set(traits)
        return self.change_traits(uuid, lambda there: wanted)

    def add_trait(self, uuid: str, trait: str) -> bool:
        """Add one trait to a provider; requests and errors as `set_traits`."""
        return self.change_traits(uuid, lambda there: there | {trait})

    def remove_trait(self, uuid: str, trait: str) -> bool:
        """Take one trait from a provider; requests and errors as `set_traits`."""
        return self.change_traits(uuid, lambda there: there - {trait})

    def traits(self, uuid: str) -> frozenset[str]:
        """Return a provider's traits. 1 request. Raises NotFound."""
        return frozenset(self._call("GET", f"/resource_providers/{uuid}/traits")["traits"])

    def set_aggregates(self, uuid: str, aggregates: Iterable[str]) -> bool:
        """Replace the provider's aggregates; return whether that changed anything.

        1 request when nothing changes, 2 otherwise. Raises NotFound.
        """
        path = f"/resource_providers/{uuid}/aggregates"
        wanted = sorted(set(aggregates))

        def attempt() -> bool:
            now = self._call("GET", path)
            if sorted(now["aggregates"]) == wanted:
                return False
            generation = now["resource_provider_generation"]
            self._call(
                "PUT", path, {"aggregates": wanted, "resource_provider_generation": generation}
            )
            return True

        return until_undisturbed(attempt)

    def provider_usages(self, uuid: str) -> dict[str, int]:
        """Return {resource class: allocated} of a provider. 1 request. Raises NotFound."""
        found: dict[str, int] = self._call("GET", f"/resource_providers/{uuid}/usages")["usages"]
        return found

    # --- choosing ---

    def candidates(
        self,
        resources: Resources,
        required: Collection[str] = (),
        forbidden: Collection[str] = (),
        member_of: Iterable[str | Collection[str]] = (),
        in_tree: str | None = None,
        limit: int | None = 1000,
    ) -> Candidates:
        """Return the providers that could serve a request. 1 request; the first time 2 where
        this is OpenStack's placement.

        All of `required` and none of `forbidden` are traits of the provider. Each entry of
        `member_of` is an aggregate's UUID, or several UUIDs, any one of them sufficient. `in_tree`
        is a provider in whose tree it must be. Raises Invalid for an unknown class or trait.
        """
        query: list[tuple[str, str]] = [
            ("resources", ",".join(f"{name}:{n}" for name, n in resources.items()))
        ]
        traits = [*sorted(required), *(f"!{name}" for name in sorted(forbidden))]
        if traits:
            query.append(("required", ",".join(traits)))
        for entry in member_of:
            uuids = entry if isinstance(entry, str) else "in:" + ",".join(sorted(entry))
            query.append(("member_of", uuids))
        if in_tree is not None:
            query.append(("in_tree", in_tree))
        if limit is not None:
            query.append(("limit", str(limit)))
        asked = urlencode(query)
        if self._is_ours:
            try:
                return messages.candidate_columns(self._call("GET", f"{_COLUMNS}?{asked}"))
            except NotFound:
                self._is_ours = False
        return messages.candidates(self._call("GET", f"/allocation_candidates?{asked}"))

    # --- claiming ---

    def claim(
        self,
        consumer_uuid: str,
        provider_uuid: str,
        resources: Resources,
        project_id: str,
        user_id: str,
    ) -> Claimed:
        """Claim resources of one provider for a consumer without allocations.

        Returns whether they were free. May be repeated: a consumer that has just this already
        is a success. 1 request for a new consumer, 2 for a repeated one, 2 more for each time
        that a generation had changed. Raises GenerationConflict when the consumer has something
        else, and (details: conflicts) when the provider's generation changed each time.
        """
        wanted = {provider_uuid: dict(resources)}
        for conflicts in range(ATTEMPTS):
            try:
                won = self.replace(consumer_uuid, wanted, project_id, user_id, None)
                return Claimed(won, conflicts)
            except GenerationConflict:
                there = self.allocations_of(consumer_uuid)
                if there.by_provider == wanted:
                    return Claimed(True, conflicts)
                if there.generation is not None:
                    raise
        raise GenerationConflict(
            "The provider is written to by too many at a time.", conflicts=ATTEMPTS
        )

    def claim_first(
        self,
        consumer_uuid: str,
        provider_uuids: Sequence[str],
        resources: Resources,
        project_id: str,
        user_id: str,
    ) -> First:
        """Claim resources of the first of at most 100 providers that has room, for a consumer
        without allocations.

        May be repeated, and raises GenerationConflict, as `claim`. 1 request for a new consumer,
        2 for a repeated one; where this is OpenStack's placement, a `claim` of each until one
        succeeds.
        """
        body: dict[str, Any] = {
            "providers": list(provider_uuids),
            "resources": dict(resources),
            "project_id": project_id,
            "user_id": user_id,
        }
        try:
            if self._is_ours:
                try:
                    path = f"{_ALL_ALLOCATIONS}/{consumer_uuid}"
                    return First(self._call("PUT", path, body)["provider"])
                except NotFound:
                    self._is_ours = False
            return self._claim_each(consumer_uuid, **body)
        except GenerationConflict:
            there = self.allocations_of(consumer_uuid).by_provider
            for uuid in provider_uuids:
                if there == {uuid: dict(resources)}:
                    return First(uuid)
            raise

    def _claim_each(
        self,
        consumer_uuid: str,
        providers: Sequence[str],
        resources: Resources,
        project_id: str,
        user_id: str,
    ) -> First:
        """Claim one after the other; a provider that is written to by too many is passed over."""
        conflicts = 0
        for uuid in providers:
            try:
                claimed = self.claim(consumer_uuid, uuid, resources, project_id, user_id)
            except GenerationConflict as error:
                if "conflicts" not in error.details:
                    raise
                conflicts += error.details["conflicts"]
                continue
            conflicts += claimed.conflicts
            if claimed.won:
                return First(uuid, conflicts)
        return First(None, conflicts)

    def claim_many(self, claims: Sequence[NewClaim]) -> bool:
        """Claim resources for many consumers without allocations: all or none.

        Returns whether all fitted and none of the consumers had something. 1 request.
        """
        body = {
            claim.consumer_uuid: allocations(
                {claim.provider_uuid: claim.resources}, claim.project_id, claim.user_id, None
            )
            for claim in claims
        }
        try:
            self._call("POST", "/allocations", body)
        except Conflict:
            return False
        return True

    def replace(
        self,
        consumer_uuid: str,
        by_provider: Mapping[str, Resources],
        project_id: str,
        user_id: str,
        generation: int | None,
    ) -> bool:
        """Replace a consumer's allocations; return whether the new ones fit.

        `generation` is from `allocations_of` (None: the consumer doesn't exist).
        1 request. Raises GenerationConflict when it isn't the current one any more, Invalid for
        an unknown provider or resource class.
        """
        body = allocations(by_provider, project_id, user_id, generation)
        try:
            self._call("PUT", f"/allocations/{consumer_uuid}", body)
        except GenerationConflict:
            raise
        except Conflict:
            return False
        self.on_freed()
        return True

    def replace_together(self, claims: Sequence[Replacement]) -> bool:
        """Replace the allocations of several consumers, all or none; return whether they fit.

        What they had counts as free, so that two may exchange what they hold. 1 request. Raises
        GenerationConflict when one of them was changed since it was read, Invalid.
        """
        body = {
            one.consumer_uuid: allocations(
                one.by_provider, one.project_id, one.user_id, one.generation
            )
            for one in claims
        }
        try:
            self._call("POST", "/allocations", body)
        except GenerationConflict:
            raise
        except Conflict:
            return False
        self.on_freed()
        return True

    def release(self, consumer_uuid: str) -> None:
        """Delete a consumer's allocations, if it has any. 1 request."""
        self._absent_is_fine("DELETE", f"/allocations/{consumer_uuid}")
        self.on_freed()

    def release_all(self, consumer_uuids: Sequence[str]) -> None:
        """Delete the allocations of consumers, of those that have any. 1 request for at most 100.

        1 each where this placement can't do that (OpenStack's).
        """
        if len(consumer_uuids) > 1:
            try:
                self._call("POST", _ALL_ALLOCATIONS, {"release": list(consumer_uuids)})
                self.on_freed()
                return
            except NotFound:
                pass
        for uuid in consumer_uuids:
            self.release(uuid)

    def allocations_of(self, consumer_uuid: str) -> Allocations:
        """Return a consumer's allocations. 1 request."""
        found = self._call("GET", f"/allocations/{consumer_uuid}")
        return Allocations(
            by_provider={u: one["resources"] for u, one in found["allocations"].items()},
            project_id=found.get("project_id"),
            user_id=found.get("user_id"),
            generation=found.get("consumer_generation"),
        )

    def provider_allocations(self, uuid: str) -> dict[str, Resources]:
        """Return {consumer UUID: {resource class: amount}} of a provider. 1 request.

        Raises NotFound.
        """
        found = self._call("GET", f"/resource_providers/{uuid}/allocations")
        return {consumer: one["resources"] for consumer, one in found["allocations"].items()}

    def all_allocations(self) -> dict[str, dict[str, Resources]] | None:
        """Return {consumer UUID: {provider UUID: {resource class: amount}}} of everybody.

        None: this placement can't list them (OpenStack's). 1 request for every 5,000 consumers.
        """
        found: dict[str, dict[str, Resources]] = {}
        marker = ""
        try:
            while True:
                page = self._call("GET", f"{_ALL_ALLOCATIONS}{marker}")
                found.update(page["allocations"])
                if page["next"] is None:
                    return found
                marker = f"?{urlencode({'marker': page['next']})}"
        except NotFound:
            return None

    def usages(self, project_id: str, user_id: str | None = None) -> dict[str, int]:
        """Return {resource class: allocated} of a project, or of one user in it. 1 request."""
        query = {"project_id": project_id} | ({"user_id": user_id} if user_id else {})
        found: dict[str, int] = self._call("GET", f"/usages?{urlencode(query)}")["usages"]
        return found

    def change_traits(self, uuid: str, change: Callable[[frozenset[str]], Iterable[str]]) -> bool:
        """Replace a provider's traits by what `change` makes of them; requests as `set_traits`."""
        path = f"/resource_providers/{uuid}/traits"

        def attempt() -> bool:
            now = self._call("GET", path)
            there = frozenset(now["traits"])
            wanted = set(change(there))
            if wanted == there:
                return False
            self._put_traits(uuid, wanted, there, now["resource_provider_generation"])
            return True

        return until_undisturbed(attempt)

    def _put_traits(self, uuid: str, wanted: Set[str], there: Set[str], generation: int) -> None:
        """Replace the traits `there` of a provider; unknown custom traits are made first."""
        path = f"/resource_providers/{uuid}/traits"
        body = {"traits": sorted(wanted), "resource_provider_generation": generation}
        try:
            self._call("PUT", path, body)
        except Invalid:
            custom = [name for name in wanted - there if name.startswith("CUSTOM_")]
            if not custom:
                raise
            for name in sorted(custom):
                self._call("PUT", f"/traits/{name}")
            self._call("PUT", path, body)

    def _absent_is_fine(self, method: str, path: str) -> None:
        try:
            self._call(method, path)
        except NotFound:
            return


def _nothing() -> None:
    """Call nobody."""
