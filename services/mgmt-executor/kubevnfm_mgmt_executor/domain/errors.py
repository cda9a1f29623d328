"""What can go wrong on machines, in words that an operator can act on. No message ever holds a secret."""

from __future__ import annotations

from kubevnfm_kit.errors import OutsideUnavailable, VnfmError


class DriverUnknown(VnfmError):
    """The VNFD names a management driver that this executor does not have."""

    code = "mgmt-driver-unknown"
    title = "Management driver failed"
    status = 422

    def __init__(self, driver: str, *, known: str) -> None:
        super().__init__(f"management driver {driver!r}: unknown; there are {known}")
        self.driver = driver


class PhaseUnsupported(VnfmError):
    """The driver cannot do this phase, or not for this kind of VNF."""

    code = "mgmt-phase-unsupported"
    title = "Management driver failed"
    status = 422


class ForeignScript(VnfmError):
    """The package's install script is not of the interface that the native driver speaks."""

    code = "mgmt-script-foreign"
    title = "Management driver failed"
    status = 422


class NodeFailure(VnfmError):
    """A task on one machine ended badly; ``node`` and ``task`` say where."""

    code = "mgmt-driver-failed"
    title = "Management driver failed"
    status = 422

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
        """``reason``: what the script says itself; then the command and its exit code would add nothing."""
        how = "was ended by a signal" if exit_code is None else f"ended with exit code {exit_code}"
        echoed = {reason, f"{task}: {reason}"}  # the script prints its reason, too
        last_lines = "\n".join(line for line in last_lines.splitlines() if line not in echoed)
        said = f"; its last output: {last_lines}" if last_lines else ""
        super().__init__(f"task {task}: {reason or f'{command} {how}'}{said}", node=node, task=task)
        self.command, self.exit_code = command, exit_code


class CommandTimedOut(NodeFailure):
    """A command on a machine did not end within its time and was killed."""

    code = "mgmt-command-timed-out"
    status = 504


class NodeUnreachable(NodeFailure):
    """No SSH session came about within the time that the request allows for it."""

    code = "node-unreachable"
    status = 504


class LoginRefused(NodeFailure):
    """The machine refuses the user name or the password (or key)."""

    code = "node-login-refused"


class SudoRefused(NodeFailure):
    """The user cannot become root on the machine."""

    code = "node-sudo-refused"


class HostKeyChanged(NodeFailure):
    """The machine shows another host key than on first contact: someone else may answer at its address."""

    code = "host-key-changed"


class TransferRefused(NodeFailure):
    """The machine does not take or give a file: its disk is full, or the place is not the login's."""


class UploadDamaged(NodeFailure):
    """What arrived on the machine is not what was sent."""


class ConnectionLost(OutsideUnavailable):
    """An SSH session broke while it was used; what the machine did meanwhile is unknown, its probes tell."""

    code = "node-connection-lost"
    title = "Management driver failed"

    def __init__(self, reason: str, *, node: str, task: str = "") -> None:
        super().__init__(f"node {node}: {reason}")
        self.node, self.task = node, task


class ClaimLost(OutsideUnavailable):
    """Another worker took the command over and writes its journal now."""

    code = "claim-lost"
    title = "Management driver failed"
