"""The owner mark of a VM that existed before: set or removed, nothing else changed.

The mark is lines of the VM's description, the only setting that never needs a restart. The SMBIOS
UUID is not changed; if it isn't the server's UUID, a line of the mark names it.
"""

from __future__ import annotations

from typing import Any

from common.messages.reports import Category
from common.resources.states import PowerState
from compute.hypervisor.port import Detail, HypervisorError, Work
from compute.hypervisor.proxmox.cluster.shared import Shared
from compute.hypervisor.proxmox.cluster.vmid import Config, ForeignError, Vm
from compute.hypervisor.proxmox.vm import power
from compute.hypervisor.proxmox.vmconfig import hardware, marks
from compute.hypervisor.proxmox.vmconfig.marks import Owner


def note_unstarted(vm: Vm, *, on: bool) -> None:
    """Write, or remove, the line that says that the VM's build is finished but for the start."""

    def call() -> Any:
        config = vm.fence()
        text = marks.with_unstarted(config, on=on)
        return vm.shared.client.post(
            f"{vm.path}/config", digest=config["digest"], description=text
        )

    vm.converge(lambda: marks.is_unstarted(vm.look() or {}) == on, call)


class ProxmoxOwnerMark:
    """Implements ``port.OwnerMark`` for one VM and one operation."""

    def __init__(self, shared: Shared, work: Work) -> None:
        command = work.command
        self._mark = marks.of_command(command)
        self._vm = Vm(shared, work, command.placed.vmid, command.placed.node, self._mark)

    def mark(self, smbios_uuid: str | None) -> Detail:
        """See ``port.OwnerMark``."""
        config = self._vm.locate()
        if config is not None and self._is_ours(config):
            return {"node": self._vm.node, "found": "the server's mark"}
        self._require_free(config, smbios_uuid)
        self._vm.converge(
            self.marked,
            lambda: self._write(self._require_free(self._vm.look(), smbios_uuid)),
            look_first=False,
        )
        return {"node": self._vm.node, "set": ["description"]}

    def start(self) -> Detail:
        """See ``port.OwnerMark``."""
        power.start(self._vm, look_first=True)
        note_unstarted(self._vm, on=False)
        return {"power_state": PowerState.RUNNING.name}

    def mark_again(self) -> Detail:
        """See ``port.OwnerMark``."""
        config = self._vm.locate()
        if config is not None and self._is_ours(config):
            return {"node": self._vm.node, "found": "the server's mark"}
        before = marks.marks_of(self._require_proven(config))
        self._vm.converge(
            self.marked,
            lambda: self._write_again(self._require_proven(self._vm.look())),
            look_first=False,
        )
        return {"node": self._vm.node, "set": ["description", "tags"], "before": list(before)}

    def unmark(self) -> Detail:
        """See ``port.OwnerMark``."""
        config = self._vm.locate()
        if config is None or not self._is_ours(config):
            return {"node": self._vm.node, "found": "no mark of the server"}
        self._vm.converge(
            lambda: not self.marked(),
            lambda: self._erase(self._vm.look() or {}),
            look_first=False,
        )
        return {"node": self._vm.node, "set": ["description", "tags"]}

    def marked(self) -> bool:
        """See ``port.OwnerMark``."""
        config = self._vm.locate()
        return config is not None and self._is_ours(config)

    def power_state(self) -> PowerState:
        """See ``port.OwnerMark``."""
        return PowerState.RUNNING if self._vm.running() else PowerState.SHUTDOWN

    def _is_ours(self, config: Config) -> bool:
        return marks.owner(config, self._mark) is Owner.OURS

    def _require_free(self, config: Config | None, smbios_uuid: str | None) -> Config:
        """Return the configuration, if it is that of the VM looked at before and without owner."""
        if config is None:
            raise HypervisorError(Category.CONFIGURATION, f"{self._vm} is not there.")
        if marks.smbios_uuid(config) != smbios_uuid:
            raise ForeignError(
                Category.STORAGE_CONFLICT, f"{self._vm} is not the VM that was looked at before."
            )
        if marks.is_claimed(config):
            raise ForeignError(
                Category.STORAGE_CONFLICT, f"{self._vm} carries a mark of micronova already."
            )
        self._require_plain(config)
        return config

    def _require_proven(self, config: Config | None) -> Config:
        """Return the configuration, if all but the mark proves that the VM is the server's."""
        uuid = self._mark.smbios_uuid or ""
        if config is None:
            raise HypervisorError(Category.CONFIGURATION, f"{self._vm} is not there.")
        has = marks.smbios_uuid(config)
        if has != uuid.lower():
            raise ForeignError(
                Category.FOREIGN,
                f"{self._vm} is not proven the server's: its SMBIOS UUID is {has or 'not set'}.",
                remedy=f"if it is the server's, as root on {self._vm.node}: qm set "
                f"{self._vm.vmid} --smbios1 uuid={uuid}, then: micronova server mark {uuid}; if "
                f"it is not: micronova server forget {uuid}",
            )
        self._require_plain(config)
        made = self._vm.shared.tasks.of_vm(self._vm.node, self._vm.vmid, "qmcreate")
        if made and made[0].who != self._vm.shared.settings.token.id:
            raise ForeignError(
                Category.FOREIGN,
                f"{self._vm} is not proven the server's: it was made by {made[0].who}.",
                upid=made[0].text,
            )
        return config

    def _require_plain(self, config: Config) -> None:
        if str(config.get("template", "0")) == "1":
            raise HypervisorError(Category.CONFIGURATION, f"{self._vm} is a template.")
        if "lock" in config:
            raise HypervisorError(
                Category.LOCK,
                f"{self._vm} is locked ({config['lock']}).",
                remedy=self._vm.mark_suspended(config),
            )

    def _write_again(self, config: Config) -> Any:
        tags = [tag for tag in str(config.get("tags", "")).split(";") if tag]
        return self._change(
            config,
            {
                "description": marks.with_mark(
                    {**config, "description": marks.without_owner(config)}, self._mark
                ),
                "tags": ";".join(dict.fromkeys([*tags, hardware.TAG])),
            },
        )

    def _write(self, config: Config) -> Any:
        return self._change(config, {"description": marks.with_mark(config, self._mark)})

    def _erase(self, config: Config) -> Any:
        if not self._is_ours(config):
            return None
        values: dict[str, Any] = {"description": marks.without_mark(config)}
        tags = [tag for tag in str(config.get("tags", "")).split(";") if tag]
        if hardware.TAG in tags:
            values["tags"] = ";".join(tag for tag in tags if tag != hardware.TAG)
        return self._change(config, values)

    def _change(self, config: Config, values: dict[str, Any]) -> Any:
        """Write once; fails when somebody else writes at the same time."""
        kept = {key: value for key, value in values.items() if value}
        empty = [key for key, value in values.items() if not value and key in config]
        if empty:
            kept["delete"] = ",".join(empty)
        if not kept:
            return None
        if "digest" in config:
            kept["digest"] = config["digest"]
        return self._vm.shared.client.post(f"{self._vm.path}/config", **kept)
