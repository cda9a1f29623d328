# SPDX-License-Identifier: Apache-2.0
"""The management driver that the VNFD names mgmt-drivers-kubernetes.

kubevnfm has this driver built in: it installs the cluster with install_k8s_cluster.sh of this package, many machines at
once, and continues where it stopped after an interruption. SOL001 requires an artifact behind the name, so the package
contains this file. It makes a VNF manager that runs management drivers from packages report that it needs its own.
"""

import sys

if __name__ == "__main__":
    sys.exit("mgmt-drivers-kubernetes: this package is made for a VNF manager that has the driver built in (kubevnfm)")
