"""One host as a decision sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.messages.facts import HostFacts
from common.resources import image_files
from scheduler.hosts import memberships
from scheduler.hosts.memberships import Memberships


@dataclass(frozen=True)
class Host:
    """One host as one decision sees it. Sizes in MiB and GiB; capacities include the ratios."""

    facts: HostFacts
    silent_seconds: float = 0.0
    """Since its agent last reported."""
    capacity: Mapping[str, int] = field(default_factory=dict)
    used: Mapping[str, int] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    failures: float = 0.0
    """Recent builds that failed here, decaying."""
    memberships: Memberships = memberships.NONE
    """The aggregates that it is in."""
    disabled: bool = False
    """By an administrator."""
    forced_down: bool = False
    """By an administrator, whatever its agent reports."""
    reserved_gib: int = 0
    """GiB that decisions of the same pass reserved on its storage for root disks."""
    cloud: str = ""
    """The ID of the cloud that is decided for."""

    @property
    def name(self) -> str:
        """The compute host's name."""
        return self.facts.host

    @property
    def zone(self) -> str:
        """Its availability zone: an aggregate's, else what the host says of itself."""
        return self.memberships.zone or self.facts.availability_zone

    @property
    def images(self) -> tuple[str, ...]:
        """The IDs of the images on its storages, without what other clouds uploaded there."""
        return image_files.of_cloud(self.facts.images, self.cloud)

    def free(self, resource_class: str) -> int:
        """Return what is free of a resource class, in its unit."""
        return self.capacity.get(resource_class, 0) - self.used.get(resource_class, 0)

    def largest(self, resource_class: str) -> int:
        """Return the most of a resource class that one server may have: what the node has."""
        return self._really_there.get(resource_class, self.capacity.get(resource_class, 0))

    def room(self, resource_class: str) -> int:
        """Return the most of a resource class that one more server could have, 0 or more."""
        return max(min(self.free(resource_class), self.largest(resource_class)), 0)

    @property
    def _really_there(self) -> Mapping[str, int]:
        facts = self.facts
        return {"VCPU": facts.vcpus, "MEMORY_MB": facts.memory_mib, "DISK_GB": facts.disk_gib}
