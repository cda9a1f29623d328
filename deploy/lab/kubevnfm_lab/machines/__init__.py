"""The lab's machines: real SSH servers with a shell, a root folder and stand-in programs that keep state."""

from kubevnfm_lab.machines.fleet import SshMachines
from kubevnfm_lab.machines.settings import MachineSettings

__all__ = ["MachineSettings", "SshMachines"]
