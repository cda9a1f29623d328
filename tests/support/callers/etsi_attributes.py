"""The attributes of requests, of grants, and of our answers, in ETSI's OpenAPI files.

``python -m callers.etsi_attributes <folder>`` writes the list of the project, ``tests/conformance/etsi_attributes.json``. The files are not part
of the project: a test compares the list with them if ``$ETSI_OPENAPI`` names their folder.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

LIST: Final = Path(__file__).parents[2] / "conformance/etsi_attributes.json"
_LCM: Final = (
    "nfv-sol002-sol003/SOL003/VNFLifecycleManagement/definitions/SOL003VNFLifecycleManagement_def.yaml",
    (
        "CreateVnfRequest", "InstantiateVnfRequest", "ScaleVnfRequest", "ScaleVnfToLevelRequest", "ChangeVnfFlavourRequest",
        "TerminateVnfRequest", "HealVnfRequest", "OperateVnfRequest", "ChangeExtVnfConnectivityRequest",
        "ChangeCurrentVnfPkgRequest", "VnfInfoModificationRequest", "CancelMode", "LccnSubscriptionRequest",
        "CreateVnfSnapshotInfoRequest", "VnfSnapshotInfoModificationRequest", "CreateVnfSnapshotRequest",
        "RevertToVnfSnapshotRequest",
    ),
)  # fmt: skip
_GRANTS: Final = (
    "nfv-sol002-sol003/SOL003/VNFLifecycleOperationGranting/definitions/SOL003VNFLifecycleOperationGranting_def.yaml",
    ("Grant",),
)
_SUBSCRIPTIONS: Final = (
    "nfv-sol002-sol003/SOL003/VNFPackageManagement/definitions/SOL003VNFPackageManagement_def.yaml",
    ("PkgmSubscriptionRequest",),
)
_PACKAGES: Final = (
    "nfv-sol005/SOL005/VNFPackageManagement/definitions/SOL005VNFPackageManagement_def.yaml",
    (
        *("CreateVnfPkgInfoRequest", "VnfPkgInfoModifications"),
        *("UploadVnfPackageFromUriRequest", "ExternalArtifactsAccessConfig"),
    ),
)
_ANSWERS: Final = (
    (_LCM[0], ("VnfInstance", "VnfLcmOpOcc", "LccnSubscription")),
    (_SUBSCRIPTIONS[0], ("VnfPkgInfo", "PkgmSubscription")),
)
_SHOWN: Final = frozenset({"VnfInstance"})
"""In requests, a type of answers that is given back as it was shown: its attributes are not those of a request."""
Types = Mapping[str, Mapping[str, str]]
"""By type: the type of each attribute; empty: no object of the specification. An object without a name has that of its place."""


def read_types(folder: Path) -> Mapping[str, Types]:
    """Return the types in ETSI's files: those of ``requests``, and those of ``answers``."""
    files = {"requests": (_LCM, _GRANTS, _SUBSCRIPTIONS, _PACKAGES), "answers": _ANSWERS}
    whole = {"requests": _SHOWN, "answers": frozenset[str]()}
    return {kind: _types_in(folder, listed, whole[kind]) for kind, listed in files.items()}


def _types_in(folder: Path, files: Iterable[tuple[str, Iterable[str]]], whole: frozenset[str]) -> Types:
    found: dict[str, dict[str, str]] = {}
    reader = _Reader(found, whole)
    for file, names in files:
        for name in names:
            reader.visit({"$ref": f"#/definitions/{name}"}, folder / file, name)
    return found


class _Reader:
    def __init__(self, found: dict[str, dict[str, str]], whole: frozenset[str]) -> None:
        self._found, self._whole = found, whole
        self._files: dict[Path, Any] = {}

    def visit(self, schema: Mapping[str, Any], file: Path, name: str) -> str:
        """Return the name of the type that a schema has, alone or as the elements of a list or map; empty: it is none."""
        schema, file, name = self._resolved(schema, file, name)
        if schema.get("type") == "array":
            return self.visit(schema.get("items") or {}, file, name)
        values = schema.get("additionalProperties")
        if isinstance(values, Mapping) and "properties" not in schema:
            return self.visit(values, file, name)
        attributes = dict(self._attributes(schema, file))
        if not attributes or name in self._whole:
            return ""
        if name not in self._found:
            self._found[name] = {}
            for one, (inner, at) in attributes.items():
                self._found[name][one] = self.visit(inner, at, f"{name}.{one}")
        return name

    def _attributes(
        self, schema: Mapping[str, Any], file: Path
    ) -> Iterator[tuple[str, tuple[Mapping[str, Any], Path]]]:
        for part in (schema, *(one for kind in ("allOf", "anyOf", "oneOf") for one in schema.get(kind, ()))):
            resolved, at, _ = self._resolved(part, file, "")
            for name, inner in (resolved.get("properties") or {}).items():
                yield name, (inner, at)

    def _resolved(self, schema: Mapping[str, Any], file: Path, name: str) -> tuple[Mapping[str, Any], Path, str]:
        while "$ref" in schema:
            path, _, pointer = str(schema["$ref"]).partition("#")
            file = (file.parent / path).resolve() if path else file
            if file not in self._files:
                self._files[file] = yaml.safe_load(file.read_text(encoding="utf-8"))
            schema = self._files[file]
            for part in pointer.strip("/").split("/"):
                schema = schema[part]
            name = pointer.rpartition("/")[2]
        return schema, file, name


def listed_types() -> Mapping[str, Types]:
    """Return the list of the project, as `read_types`."""
    listed: dict[str, Types] = json.loads(LIST.read_text(encoding="utf-8"))
    del listed["source"]
    return listed


def _main(folder: str) -> None:
    source = (
        "ETSI GS NFV-SOL 003 V3.7.1 and GS NFV-SOL 005 V3.7.1, OpenAPI files of ETSI (BSD-3-Clause): names only, "
        "made by callers.etsi_attributes"
    )
    LIST.write_text(json.dumps({"source": source, **read_types(Path(folder))}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main(sys.argv[1])
