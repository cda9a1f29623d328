"""The bindings of interfaces that KubeVirt has removed, in requests and manifests (multicloud.md MC-066)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, api_kind

REMOVED_BINDINGS: Final = ("slirp", "macvtap", "passt")
"""The API still accepts them, and a machine without an interface would be taken for a working one."""
_INTERFACES: Final = ("spec", "domain", "devices", "interfaces")


def why_removed(binding: str) -> str:
    """Return why a binding is refused, and what takes its place."""
    return f'not expected: KubeVirt has removed it in 1.3, and would ignore it; {{"plugin": "{binding}"}} names its successor'


def removed_bindings(body: object) -> Iterator[str]:
    """Yield each place of a manifest with such a binding, and why it is refused; a manifest in any form."""
    path = MACHINE_TEMPLATES.get(api_kind(body)) if isinstance(body, Mapping) else None
    if path is None:
        return
    place = (*path, *_INTERFACES)
    found: Any = body
    for name in place:
        found = found.get(name) if isinstance(found, Mapping) else None
    for index, interface in enumerate(found if isinstance(found, list) else ()):
        for binding in REMOVED_BINDINGS:
            if isinstance(interface, Mapping) and interface.get(binding) is not None:
                yield f"{'.'.join(place)}[{index}].{binding}: {why_removed(binding)}"
