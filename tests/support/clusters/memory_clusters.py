"""The workload clusters of the samples, with the infrastructure provider of Cluster API that keeps machines in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml
from packages.package_variants import SAMPLES, variant

Object = dict[str, Any]

ADDON: Final = "Files/addons/cni.yaml"
NEVER: Final = "24h"
_PARTS: Final = ("vm", "node", "apiServer", "etcd")


@dataclass(frozen=True)
class MemoryCluster:
    """The manifests of a workload cluster: those of a sample of OpenStack, with machines in memory.

    The fields change them, as another version of the package does.
    """

    sample: str = "capi-workload"
    name: str = "workload"
    version: str = "v1.33.1"
    startup: Mapping[str, str] = field(default_factory=dict)
    """How long a part of a machine (`_PARTS`) takes to start, by the role: ``{"worker/vm": NEVER}``."""
    edits: Mapping[tuple[str, ...], object] = field(default_factory=dict)
    """Other values, by the kind and the path of the field: ``{("Cluster", "spec", "paused"): True}``."""
    more: tuple[Object, ...] = ()
    """Further objects."""

    def but(self, **fields: Any) -> MemoryCluster:
        """Return the cluster with other fields."""
        return replace(self, **fields)

    @property
    def files(self) -> Mapping[str, str]:
        """The manifests by their path in the package."""
        folder = SAMPLES / self.sample
        found = {}
        # The class of a cluster comes before the cluster.
        for path in sorted((folder / "Files" / "kubernetes").glob("*.yaml")):
            objects = [self._changed(each) for each in yaml.safe_load_all(path.read_text()) if each["kind"] != "Secret"]
            if objects:
                found[str(path.relative_to(folder))] = yaml.safe_dump_all(objects, sort_keys=False)
        if self.more:
            found["Files/kubernetes/more.yaml"] = yaml.safe_dump_all(self.more)
        return found

    def package(self, folder: Path, vnfd_id: str) -> bytes:
        """Return the package as an archive."""
        return variant(folder, self.sample, vnfd_id=vnfd_id, files=self.files)

    def _changed(self, body: Object) -> Object:
        kind = str(body["kind"])
        text = yaml.safe_dump(body, sort_keys=False).replace("OpenStack", "Dev").replace("v1.33.1", self.version)
        changed: Object = yaml.safe_load(text)
        if kind in {"OpenStackCluster", "OpenStackClusterTemplate"}:
            _set_spec(changed, {"backend": {"inMemory": {}}})
        elif kind == "OpenStackMachineTemplate":
            role = "worker" if body["metadata"]["name"].endswith("md-0") else "controlPlane"
            times = {part: self.startup.get(f"{role}/{part}", "1s") for part in _PARTS}
            backend = {part: {"provisioning": {"startupDuration": time}} for part, time in times.items()}
            _set_spec(changed, {"backend": {"inMemory": backend}})
        elif kind == "MachineDeployment":
            del changed["spec"]["template"]["spec"]["failureDomain"]
        elif kind == "Cluster":
            changed["metadata"]["name"] = self.name
        for (edited, *path), value in self.edits.items():
            if changed["kind"] == edited:
                _put(changed, path, value)
        return changed


def _put(body: Object, path: Sequence[str], value: object) -> None:
    for name in path[:-1]:
        body = body.setdefault(name, {})
    body[path[-1]] = value


def _set_spec(body: Object, spec: Object) -> None:
    if body["kind"].endswith("Template"):
        body["spec"]["template"]["spec"] = spec
    else:
        body["spec"] = spec
