"""Commands that root types on a node to mend a VM, as bash reads them, each in one line."""

from __future__ import annotations

_ESCAPED = str.maketrans({"\\": r"\\", "'": r"\'", "\n": r"\n", "\r": r"\r", "\t": r"\t"})


def describe(vmid: int, text: str, *, skip_lock: bool = False) -> str:
    """Return the command that sets a VM's description.

    ``skip_lock``: though the VM is locked, which Proxmox VE allows nobody but root.
    """
    lock = " --skiplock 1" if skip_lock else ""
    return f"qm set {vmid}{lock} --description $'{text.translate(_ESCAPED)}'"
