"""The texts of the manifests that a request names, as far as they are in the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue

_LARGEST: Final = 10 * 2**20
"""infra-k8s reads no larger manifest."""


async def package_texts(packages: PackageCatalogue, package_id: str, files: Sequence[str]) -> Sequence[tuple[str, str]]:
    """Return (name, text) of each file; without URLs, which infra-k8s fetches before it applies anything."""
    names = [name for name in dict.fromkeys(files) if "://" not in name]
    found = await packages.files(package_id, names, limit_bytes=_LARGEST) if names else {}
    return [(name, raw.decode(errors="replace")) for name, raw in found.items()]
