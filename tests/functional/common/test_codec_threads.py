"""Messages of classes that no message was of before, which several threads read at once."""

from __future__ import annotations

import subprocess
import sys

from common.process.child import ROOT

#: new classes each time, as at a service's start; in a process of its own, which may crash
_READS = '''
import dataclasses, sys, threading
from common import codec

sys.setswitchinterval(1e-6)

@dataclasses.dataclass(frozen=True)
class Member(codec.Tagged):
    """The base of a family."""

def message() -> type:
    inner = None
    for depth in range(6):
        fields = [(f"f{n}", tuple[int, ...], dataclasses.field(default=())) for n in range(8)]
        if inner is not None:
            fields.append(("inner", inner, dataclasses.field(default_factory=inner)))
        inner = dataclasses.make_dataclass(f"Depth{depth}", fields, frozen=True)
    return inner

def member() -> type:
    fields = [(f"f{n}", tuple[int, ...], dataclasses.field(default=())) for n in range(40)]
    return dataclasses.make_dataclass("Member", fields, bases=(Member,), frozen=True)

for make in (message, member) * 25:
    kind, start, read = make(), threading.Barrier(6), []

    def go() -> None:
        start.wait()
        read.append(codec.load(kind, {"f0": [1], "inner": {"f1": [2]}}))

    threads = [threading.Thread(target=go) for _ in range(6)]
    [one.start() for one in threads]
    [one.join() for one in threads]
    assert [one.f0 for one in read] == [(1,)] * 6, read
'''


def test_a_class_is_learned_once() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", _READS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
