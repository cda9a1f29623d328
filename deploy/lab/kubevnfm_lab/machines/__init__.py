"""The lab's machines: real SSH servers with a shell, a root folder and stand-in programs that keep state."""

from kubevnfm_lab.machines.fleet import SshMachines
from kubevnfm_lab.machines.settings import MachineSettings
from kubevnfm_lab.machines.state_dir import StateDirInUse

__all__ = ["MachineSettings", "SshMachines", "StateDirInUse"]
