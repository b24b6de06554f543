"""Lines of a console log."""

from __future__ import annotations

from dashboard.pages.server.log import of_cloud_init

_KEYS = (
    "-----BEGIN SSH HOST KEY KEYS-----",
    "ssh-ed25519 AAAA root@web",
    "-----END SSH HOST KEY KEYS-----",
)


def test_only_what_cloud_init_wrote() -> None:
    said = (
        "[    2.1] cloud-init[312]: Cloud-init v. 22.4.2 running 'init-local'",
        "ci-info: | eth0 | True |",
        "<14>Nov 29 12:00:00 cloud-init: ####",
        *_KEYS,
        "[    6.4] cloud-init[402]: Cloud-init v. 22.4.2 finished",
    )
    others = ("[    0.0] Linux version 6.1", "", "ssh-ed25519 of nobody", "web login: ")
    text = "\r\n".join((*others, *said[:3], *others, *said[3:], *others))
    assert of_cloud_init(text) == "\n".join(said)
    assert of_cloud_init("\n".join(others)) == ""
    # a log that ends within the keys
    assert of_cloud_init("\n".join((*others, *_KEYS[:2]))) == "\n".join(_KEYS[:2])
