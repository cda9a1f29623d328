# SPDX-License-Identifier: Apache-2.0
"""The management driver that the VNFD names kuryr-kubernetes.

kubevnfm has this driver built in. SOL001 requires an artifact behind the name, so the package contains this file. It makes
a VNF manager that runs management drivers from packages report that it needs its own.
"""

import sys

if __name__ == "__main__":
    sys.exit("kuryr-kubernetes: this package is made for a VNF manager that has the driver built in (kubevnfm)")
