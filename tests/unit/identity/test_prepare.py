from __future__ import annotations

import configparser
from pathlib import Path

import pytest

from identity.layout import Job, catalog
from identity.passwords import USERS
from identity.prepare import configuration, digest

PASSWORDS = dict.fromkeys(USERS, "x")


def job(auth_url: str = "http://k:5000/v3", **passwords: str) -> Job:
    return Job(catalog(auth_url, "http://api"), PASSWORDS | passwords)


@pytest.mark.parametrize(
    ("auth_url", "public"),
    [
        ("http://k:5000/v3", "http://k:5000"),
        ("http://k:5000/v3/", "http://k:5000"),
        ("https://cloud.example/identity/v3", "https://cloud.example/identity"),
    ],
)
def test_configuration(auth_url: str, public: str) -> None:
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(configuration(Path("/state/$x"), job(auth_url)))
    assert parser["DEFAULT"]["public_endpoint"] == public
    assert parser["database"]["connection"] == "sqlite:////state/$$x/keystone.db?timeout=60"
    assert parser["token"]["provider"] == "fernet"


def test_digest_differs_by_job_and_shows_no_password() -> None:
    digests = {digest(job()), digest(job("http://k:5001/v3")), digest(job(demo="other"))}
    assert len(digests) == 3
    assert digest(job()) == digest(job())
