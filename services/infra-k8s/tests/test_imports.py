"""The modules that a process of the service has in memory before its first request."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import kubevnfm_infra_k8s.wiring
assert not [name for name in sys.modules if name.startswith("kubernetes_asyncio")], "the models are in memory"
import kubernetes_asyncio.client
assert kubernetes_asyncio.client.V1Pod(kind="Pod").kind == "Pod"
"""


def test_the_models_of_kubernetes_are_not_imported_and_can_be_by_others() -> None:
    """They are 859 modules, of which nothing is used."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=120)
