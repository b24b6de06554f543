"""The files of docs/kubernetes.md hold what the programs that read them know."""

from __future__ import annotations

import pytest

from tests.fixtures import kubernetes
from tests.fixtures.kubernetes import Printed


@pytest.mark.parametrize("printed", kubernetes.OPTIONS, ids=lambda one: one[2])
def test_options_are_those_of_the_program(printed: Printed) -> None:
    found = kubernetes.options(printed)
    assert kubernetes.wrong_options(printed, found) == []
    assert set(found["metadata"]["search-order"].split(",")) <= kubernetes.SEARCH_ORDER


@pytest.mark.parametrize(
    "wrong",
    [
        {"loadbalancer": {"enable": "false"}},
        {"loadbalancer": {"enabled": "maybe"}},
        {"loadbalancer": {"max-shared-lb": "two"}},
        {"blockstorage": {"rescan-on-resize": "true"}},
    ],
)
def test_what_the_program_leaves_out_is_found(wrong: dict[str, dict[str, str]]) -> None:
    assert len(kubernetes.wrong_options(kubernetes.MANAGER, wrong)) == 1


def test_fields_are_those_of_the_provider() -> None:
    found = kubernetes.objects(kubernetes.CLUSTER)
    assert set(found) == set(kubernetes.SPECS)
    for kind, one in found.items():
        assert one["apiVersion"] == "infrastructure.cluster.x-k8s.io/v1beta1"
        assert kubernetes.unknown_fields(one["spec"], kubernetes.SPECS[kind]) == []
    for kind, name, fields in kubernetes.REQUIRED:
        assert set(fields) <= set(found[kind]["spec"][name])
    # The provider refuses an address of the API server from outside beside it.
    assert found["OpenStackCluster"]["spec"]["disableAPIServerFloatingIP"]


def test_fields_of_the_storage_class_are_those_of_kubernetes_and_the_driver() -> None:
    [one] = kubernetes.objects(kubernetes.CLASS).values()
    assert kubernetes.unknown_fields(one, kubernetes.STORAGE_CLASS) == []
    assert one["provisioner"] == "cinder.csi.openstack.org"
    assert one["volumeBindingMode"] in {"Immediate", "WaitForFirstConsumer"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"network": {"filter": {"nam": "vmbr0"}}}, [".network.filter.nam"]),
        (
            {"managedSecurityGroups": {}, "disableExternalNetwork": "true"},
            [".disableExternalNetwork"],
        ),
        ({"subnets": [{"cidr": "10.0.0.0/8"}]}, [".subnets[].cidr"]),
    ],
)
def test_fields_that_the_provider_has_not_are_found(given: object, found: list[str]) -> None:
    assert kubernetes.unknown_fields(given, kubernetes.SPECS["OpenStackCluster"]) == found
