"""The kinds of VNFs: importing this module makes their sequences and steps known to `SEQUENCES`."""

from kubevnfm_lcm_api.lifecycle.containers import plans as containers
from kubevnfm_lcm_api.lifecycle.machines import plans as machines
from kubevnfm_lcm_api.lifecycle.scripts import plans as scripts
from kubevnfm_lcm_api.lifecycle.workloads import plans as workloads

KINDS = (scripts, machines, containers, workloads)
