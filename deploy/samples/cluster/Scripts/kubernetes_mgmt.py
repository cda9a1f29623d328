# SPDX-License-Identifier: Apache-2.0
"""The management driver that the VNFD names mgmt-drivers-kubernetes.

kubevnfm has this driver built in: it installs the cluster with install_k8s_cluster.sh of this package, many machines at
once, and goes on where it stood after an interruption. SOL001 wants an artifact behind the name, so the package holds
this file. A VNF manager that runs management drivers of packages finds out here that it needs its own.
"""

import sys

if __name__ == "__main__":
    sys.exit("mgmt-drivers-kubernetes: this package is made for a VNF manager that has the driver built in (kubevnfm)")
