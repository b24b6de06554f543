"""Messages between two releases: what the receiver doesn't know."""

from __future__ import annotations

import enum
import logging
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from oslo_messaging.transport import RPCTransport

from common import config, context, log, rpc
from common.codec import Member, Tagged
from common.errors import Unavailable
from common.messages.reports import Category, Failure
from common.rpc import signatures
from common.rpc.localbus import LocalDriver
from common.rpc.signatures import Unreadable


class Colour(enum.StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Animal(Tagged):
    name: str = ""


@dataclass(frozen=True)
class Cat(Animal):
    colour: Colour = Colour.RED


@dataclass(frozen=True)
class Owner:
    name: str
    animal: Member[Animal] | None = None
    age: int = 30


class Endpoint:
    """What an older release has."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def one(self, ctxt: Any, owner: Owner, times: int = 1) -> int:
        self.got.append(owner)
        return times

    def base(self, ctxt: Any, animal: Annotated[Animal, Unreadable.AS_BASE]) -> str:
        self.got.append(animal)
        return type(animal).__name__

    def many(self, ctxt: Any, owners: Annotated[list[Owner], Unreadable.LEFT_OUT]) -> list[str]:
        self.got += owners
        return [one.name for one in owners]


class Asker:
    """A newer release's side of it."""

    def __init__(self, name: str) -> None:
        conf = config.load([rpc.register, log.register])
        bus = RPCTransport(LocalDriver(conf, f"micronova-local://{name}"))
        self.endpoint = Endpoint()
        self.server = rpc.Server(bus, "topic", "me", [self.endpoint], workers=1)
        self.server.start()
        self._client = rpc.Client(bus, "topic")

    def __call__(self, method: str, **values: Any) -> Any:
        return self._client.call(context.internal(), method, **values)


@pytest.fixture
def ask(request: pytest.FixtureRequest) -> Any:
    made = Asker(request.node.name)
    yield made
    made.server.stop()


def test_new_fields_and_arguments_are_left_out_and_missing_ones_default(ask: Asker) -> None:
    assert ask("one", owner={"name": "Ann", "shoe": 38}, loudly=True) == 1
    assert ask.endpoint.got == [Owner("Ann")]


@pytest.mark.parametrize(
    "animal", [{"kind": "Dog", "name": "Rex"}, {"kind": "Cat", "colour": "ultraviolet"}]
)
def test_what_cannot_be_read_is_unavailable(ask: Asker, animal: Any) -> None:
    with pytest.raises(Unavailable, match="can't read a message"):
        ask("one", owner={"name": "Ann", "animal": animal})
    assert ask.endpoint.got == []


def test_an_unknown_method_is_unavailable(ask: Asker, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), pytest.raises(Unavailable, match="no method teleport"):
        ask("teleport", owner={"name": "Ann"})
    assert [one for one in caplog.records if one.exc_info] == []


@pytest.mark.parametrize(
    "animal", [{"kind": "Dog", "name": "Rex"}, {"kind": "Cat", "name": "Rex", "colour": "x"}]
)
def test_of_a_family_the_base_is_read_where_that_is_meant(ask: Asker, animal: Any) -> None:
    assert ask("base", animal=animal) == "Animal"
    assert ask.endpoint.got == [Animal("Rex")]
    assert ask("base", animal={"kind": "Cat"}) == "Cat"


def test_of_a_list_the_others_are_read_where_that_is_meant(ask: Asker) -> None:
    sent = [{"name": "Ann"}, {"name": "Bob", "animal": {"kind": "Dog"}}, {"name": "Cyd"}]
    assert ask("many", owners=sent) == ["Ann", "Cyd"]


def test_an_answer_that_cannot_be_read_is_unavailable() -> None:
    def method(self: Any, ctxt: Any) -> Animal:
        raise NotImplementedError

    assert signatures.load_answer(method, {"kind": "Cat", "stripes": 9}) == Cat()
    with pytest.raises(Unavailable, match="Dog is no Animal"):
        signatures.load_answer(method, {"kind": "Dog"})


def test_a_category_that_is_not_known_is_an_outcome_that_is_not_known() -> None:
    failure = signatures.load(Failure, {"category": "moon_phase", "message": "full"})
    assert failure.category is Category.UNKNOWN_OUTCOME
