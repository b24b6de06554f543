"""The reshaper: inventories and allocations in one transaction."""

from __future__ import annotations

from placement import reshaper
from placement.operation import DONE, Answer, Call, Services, operation
from placement.resources.allocations import claim
from placement.resources.inventories import complete
from placement.schemas import allocations as schemas


class Reshaper:
    """`/reshaper`."""

    def __init__(self, services: Services) -> None:
        self.services = services

    @operation("reshaper:reshape", since="1.30", body=schemas.RESHAPE)
    def on_post(self, call: Call) -> Answer:
        """Replace inventories and allocations, all or none."""
        body = call.body()
        wanted = {
            uuid: reshaper.Wanted(
                given["resource_provider_generation"],
                {name: complete(values) for name, values in given["inventories"].items()},
            )
            for uuid, given in body["inventories"].items()
        }
        claims = [claim(call, uuid, given) for uuid, given in body["allocations"].items()]
        self.services.database.write(
            lambda connection: reshaper.reshape(connection, wanted, claims)
        )
        return DONE
