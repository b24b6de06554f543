"""What root types is read by bash as it is meant."""

from __future__ import annotations

import subprocess

import pytest

from compute.hypervisor.proxmox.vmconfig import by_hand


@pytest.mark.parametrize(
    "text",
    [
        "one line",
        "two\nlines",
        "Ann's $HOME `id` $(id)",
        "a\\nb \\",
        'a tab\t and "quotes"',
        "é\r\nü",
        "",
    ],
)
def test_bash_reads_the_description_as_it_is(text: str) -> None:
    command = by_hand.describe(100, text, skip_lock=True)
    assert "\n" not in command
    read = subprocess.run(
        ["/bin/bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True
    )
    words = read.stdout.decode().split("\0")[:-1]
    assert words == ["qm", "set", "100", "--skiplock", "1", "--description", text]
