from __future__ import annotations

import base64

import yaml

from dashboard.client_files import of_credential, of_password

URL = "https://keystone.example.org/v3"
CREDENTIAL = {"id": "c1", "secret": "it's $ecret"}


def test_several_regions_are_offered_and_none_is_left_out() -> None:
    for regions, said in (
        ([], {}),
        (["one"], {"region_name": "one"}),
        (["one", "two"], {"regions": ["one", "two"]}),
    ):
        found = yaml.safe_load(of_password(URL, regions, {"username": "ä: '"}).text)
        assert found["clouds"]["micronova"] == {
            "auth": {"auth_url": URL, "username": "ä: '"},
            "interface": "public",
            "identity_api_version": 3,
            **said,
        }


def test_a_credential_has_two_files() -> None:
    clouds, openrc = of_credential(URL, ["one"], CREDENTIAL)
    assert [clouds.name, openrc.name] == ["clouds.yaml", "openrc"]
    auth = yaml.safe_load(clouds.text)["clouds"]["micronova"]["auth"]
    assert auth["application_credential_secret"] == CREDENTIAL["secret"]
    assert "export OS_APPLICATION_CREDENTIAL_SECRET='it'\"'\"'s $ecret'\n" in openrc.text
    unset = openrc.text.partition("\n")[0].split()
    assert {"OS_PASSWORD", "OS_PROJECT_NAME"} <= set(unset)
    assert "OS_APPLICATION_CREDENTIAL_ID" not in unset


def test_the_link_has_the_file() -> None:
    file = of_password(URL, [], {})
    assert base64.b64decode(file.address.partition("base64,")[2]).decode() == file.text
