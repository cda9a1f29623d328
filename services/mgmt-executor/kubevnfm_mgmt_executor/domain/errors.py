"""Errors of drivers and machines, with texts that an operator can act on. No text holds a secret."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.printable import quoted_end

_QUOTED_BYTES: Final = 2000
"""How much of a command's output its error quotes. The output is the machine's or the package's, and already masked."""


class DriverUnknown(VnfmError, code="mgmt-driver-unknown", title="Management driver failed"):
    """The VNFD names a management driver that this executor does not have."""

    def __init__(self, driver: str, *, known: str) -> None:
        super().__init__(f"management driver {driver!r} is unknown; known are {known}")
        self.driver = driver


class PhaseUnsupported(VnfmError, code="mgmt-phase-unsupported", title="Management driver failed"):
    """The driver does not support this phase, or not for this kind of VNF."""


class NodeFailure(VnfmError, code="mgmt-driver-failed", title="Management driver failed"):
    """A task on one machine failed; ``node`` and ``task`` name it."""

    def __init__(self, reason: str, *, node: str, task: str = "") -> None:
        super().__init__(f"node {node}: {reason}")
        self.node, self.task, self.reason = node, task, reason


class CommandUnsuccessful(NodeFailure):
    """A command on a machine ended with a status other than 0."""

    def __init__(
        self,
        *,
        node: str,
        task: str,
        command: str,
        exit_code: int | None,
        last_lines: str,
        reason: str = "",
    ) -> None:
        """``reason``: the script's own text, which replaces the command and its exit code."""
        how = "was ended by a signal" if exit_code is None else f"ended with exit code {exit_code}"
        # The script prints its reason, too.
        echoed = {reason, f"{task}: {reason}", f"{task}: {command} {how}"}
        last_lines = "\n".join(line for line in last_lines.splitlines() if line not in echoed)
        output = f"; its last output:{quoted_end(last_lines, _QUOTED_BYTES)}" if last_lines else ""
        super().__init__(f"task {task}: {reason or f'{command} {how}'}{output}", node=node, task=task)
        self.command, self.exit_code = command, exit_code


class CommandTimedOut(NodeFailure, code="mgmt-command-timed-out", status=504):
    """A command on a machine did not end within its time and was killed."""


class NodeNotDrained(NodeFailure, code="node-not-drained"):
    """Pods were left on a node when the time to drain it was over; the text names them."""


class NodeUnreachable(NodeFailure, code="node-unreachable", status=504):
    """No SSH session could be opened within the time that the request allows."""


class AddressRefused(NodeFailure, code="node-address-refused"):
    """The address of the machine, or of its bastion, is none that packages may choose; the text says how to go on."""


class LoginRefused(NodeFailure, code="node-login-refused"):
    """The machine refuses the user name or the password (or key)."""


class ForwardingRefused(NodeFailure, code="node-forwarding-refused"):
    """The bastion accepts the login, but does not forward connections to the machine."""


class SudoRefused(NodeFailure, code="node-sudo-refused"):
    """The user cannot become root on the machine."""


class SudoMissing(NodeFailure, code="node-sudo-missing"):
    """The machine has no sudo, and its user is not root."""


class HostKeyChanged(NodeFailure, code="host-key-changed"):
    """The machine shows another host key than on first contact: another machine may answer at its address."""


class SessionRefused(NodeFailure):
    """The machine accepts the login, but not what is done next; another try finds the same."""

    is_of_purpose = False
    """Whether a session was opened, and its purpose was refused."""


class TransferRefused(NodeFailure):
    """The machine refuses to write or read a file: its disk is full, or the user may not use the folder."""


class UploadDamaged(NodeFailure):
    """The file on the machine differs from the file that was sent."""


class ConnectionLost(OutsideUnavailable, code="node-connection-lost", title="Management driver failed"):
    """An SSH session broke while it was used. How far the machine came is unknown until a task asks it."""

    def __init__(self, reason: str, *, node: str, task: str = "") -> None:
        super().__init__(f"node {node}: {reason}")
        self.node, self.task = node, task


class ClaimLost(OutsideUnavailable, code="claim-lost", title="Management driver failed"):
    """Another worker took over the command and now writes its journal."""
