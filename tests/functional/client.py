"""A user's program in a cloud of many processes, and what must be left when it has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.functional.waiting import eventually

if TYPE_CHECKING:
    from tests.functional.audits import Running
    from tests.functional.distributed import DistributedCloud


class Client:
    """One user's program."""

    def __init__(self, cloud: Running, flavor: str = "m1.nano", image: str = "cirros") -> None:
        self._cloud = cloud.connection()
        self.compute = self._cloud.compute
        self._what = {
            "flavor_id": self.compute.find_flavor(flavor, ignore_missing=False).id,
            "image_id": self._cloud.image.find_image(image, ignore_missing=False).id,
            "networks": [
                {"uuid": self._cloud.network.find_network("vmbr0", ignore_missing=False).id}
            ],
        }

    def create(self, name: str) -> Any:
        return self.compute.create_server(name=name, **self._what)

    @property
    def body(self) -> dict[str, Any]:
        """What a server is made of, as the API takes it."""
        names = {"flavorRef": "flavor_id", "imageRef": "image_id", "networks": "networks"}
        return {name: self._what[ours] for name, ours in names.items()}

    @property
    def project(self) -> str:
        return str(self._cloud.current_project_id)

    def create_volume(self, server: str) -> str:
        """One of 1 GiB that the server reaches."""
        body = {
            "volume": {"size": 1},
            "OS-SCH-HNT:scheduler_hints": {"local_to_instance": server},
        }
        return str(self._volume("POST", "/volumes", body)["volume"]["id"])

    def delete_volume(self, volume: str) -> None:
        self._volume("DELETE", f"/volumes/{volume}")

    def volumes(self) -> list[str]:
        """The status of each."""
        return [one["status"] for one in self._volume("GET", "/volumes/detail")["volumes"]]

    def _volume(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._cloud.block_storage.request(path, method, json=body)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def attach(self, server: str, volume: str) -> None:
        self.compute.create_volume_attachment(server, volume=volume)

    def detach(self, server: str, volume: str) -> None:
        self.compute.delete_volume_attachment(server, volume)


def statuses(compute: Any) -> dict[str, str]:
    # Not as the SDK's objects: a hundred of them, again and again, would keep the tests busy.
    found = compute.get("/servers/detail").json()["servers"]
    return {one["name"]: one["status"] for one in found}


def _usages(placement: Any) -> dict[str, Any]:
    """{provider: what is allocated of it}, if anything is."""
    found = {}
    for provider in placement.get("/resource_providers").json()["resource_providers"]:
        url = f"/resource_providers/{provider['uuid']}/usages"
        usages = placement.get(url).json()["usages"]
        if any(usages.values()):
            found[provider["name"]] = usages
    return found


def assert_nothing_is_left(cloud: DistributedCloud) -> None:
    admin = cloud.connection("micronova-admin")
    assert list(admin.compute.servers(all_projects=True)) == []
    # What a build left on a silent host is removed, with its claim, soon after that answers.
    eventually(lambda: not _usages(admin.placement), 90)
    limits = cloud.connection().compute.get("/limits").json()["limits"]["absolute"]
    used = {name: value for name, value in limits.items() if name.endswith("Used") and value > 0}
    assert used == {}
    # A delete is reported when config and volumes are gone; a lock may be let go a moment later.
    left: dict[str, Any] = {}

    def nothing_held() -> bool:
        left.clear()
        left.update({name: held for name, held in cloud.held().items() if any(held.values())})
        return not left

    try:
        eventually(nothing_held, 30)
    except AssertionError as error:
        raise AssertionError(f"left: {left}") from error
