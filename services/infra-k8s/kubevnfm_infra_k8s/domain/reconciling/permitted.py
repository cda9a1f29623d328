"""The namespaces in which nothing is created, and the names that only we write. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.kubernetes_names import is_of_kubernetes

from kubevnfm_infra_k8s.domain.reconciling.ports import Region

_RESERVED: Final = ("kubevnfm.io", "k8splugin.io")
"""The prefixes by which objects are found to be of a link, a volume or an instance."""


def check_permitted(places: Sequence[tuple[str, str]], region: Region) -> None:
    """Raise Unprocessable for a namespace, each with its place, in which nothing is created (MC-032)."""
    faults = [
        (place, f"another namespace than {each} expected: it is protected")
        for place, each in places
        if is_of_kubernetes(each) or each in region.protected_namespaces
    ]
    if faults:
        raise Unprocessable(*faults[0], *faults[1:])


def reserved(names: Iterable[str]) -> Sequence[str]:
    """Return the names of labels or annotations by which an object would claim to be of another owner."""
    return sorted(name for name in names if name.partition("/")[0].endswith(_RESERVED))
