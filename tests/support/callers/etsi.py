"""Checks v2 responses and package subscriptions against ETSI's OpenAPI files, in the folder ``$ETSI_OPENAPI``.

The files are not part of the project. Some of their rules reject data that ETSI's specification, or the rest of the same
file, declares valid. This module corrects each such defect, and fails if a file no longer has the defect.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from jsonschema_rs import Draft202012, Draft202012Validator, Registry, ValidationError, Validator

VARIABLE: Final = "ETSI_OPENAPI"
_ROOT: Final = "file:///etsi/"
_SOL003: Final = "SOL003"
_GENERAL: Final = f"{_SOL003}/General_Definitions/SOL003_def.yaml"
_LCM: Final = f"{_SOL003}/VNFLifecycleManagement/definitions/SOL003VNFLifecycleManagement_def.yaml"
_NOTIFICATIONS: Final = (
    f"{_SOL003}/VNFLifecycleManagementNotification/definitions/SOL003VNFLifecycleManagementNotification_def.yaml"
)
_PACKAGES: Final = f"{_SOL003}/VNFPackageManagement/definitions/SOL003VNFPackageManagement_def.yaml"
_PACKAGE_NOTIFICATIONS: Final = (
    f"{_SOL003}/VNFPackageManagementNotification/definitions/SOL003VNFPackageManagementNotification_def.yaml"
)
_FAULTS: Final = f"{_SOL003}/VNFFaultManagement/definitions/SOL003VNFFaultManagement_def.yaml"
_FAULT_NOTIFICATIONS: Final = (
    f"{_SOL003}/VNFFaultManagementNotification/definitions/SOL003VNFFaultManagementNotification_def.yaml"
)
_PERFORMANCE: Final = f"{_SOL003}/VNFPerformanceManagement/definitions/SOL003VNFPerformanceManagement_def.yaml"
_PERFORMANCE_NOTIFICATIONS: Final = (
    f"{_SOL003}/VNFPerformanceManagementNotification/definitions/SOL003VNFPerformanceManagementNotification_def.yaml"
)
_FILE_BY_TYPE: Final = {
    "VnfInstance": _LCM,
    "VnfLcmOpOcc": _LCM,
    "VnfSnapshotInfo": _LCM,
    "VnfSnapshotInfoModifications": _LCM,
    "LccnSubscription": _LCM,
    "ProblemDetails": _GENERAL,
    "ApiVersionInformation": _GENERAL,
    "VnfLcmOperationOccurrenceNotification": _NOTIFICATIONS,
    "VnfIdentifierCreationNotification": _NOTIFICATIONS,
    "VnfIdentifierDeletionNotification": _NOTIFICATIONS,
    "PkgmSubscription": _PACKAGES,
    "VnfPkgInfo": _PACKAGES,
    "VnfPackageOnboardingNotification": _PACKAGE_NOTIFICATIONS,
    "VnfPackageChangeNotification": _PACKAGE_NOTIFICATIONS,
    "Alarm": _FAULTS,
    "AlarmModifications": _FAULTS,
    "FmSubscription": _FAULTS,
    "AlarmNotification": _FAULT_NOTIFICATIONS,
    "AlarmClearedNotification": _FAULT_NOTIFICATIONS,
    "AlarmListRebuiltNotification": _FAULT_NOTIFICATIONS,
    "PmJob": _PERFORMANCE,
    "PmJobModifications": _PERFORMANCE,
    "PerformanceReport": _PERFORMANCE,
    "Threshold": _PERFORMANCE,
    "ThresholdModifications": _PERFORMANCE,
    "PerformanceInformationAvailableNotification": _PERFORMANCE_NOTIFICATIONS,
    "ThresholdCrossedNotification": _PERFORMANCE_NOTIFICATIONS,
}
_TYPE_BY_PATH: Final = (
    (r"/vnflcm/v2/vnf_instances(/[^/]+)?", "VnfInstance"),
    (r"/vnflcm/v2/vnf_lcm_op_occs(/[^/]+(/fail)?)?", "VnfLcmOpOcc"),
    (r"/vnflcm/v2/vnf_snapshots(/[^/]+)?", "VnfSnapshotInfo"),
    (r"/vnflcm/v2/subscriptions(/[^/]+)?", "LccnSubscription"),
    (r"/vnflcm/(v2/)?api_versions", "ApiVersionInformation"),
    (r"/vnffm/v1/alarms(/[^/]+)?", "Alarm"),
    (r"/vnffm/v1/subscriptions(/[^/]+)?", "FmSubscription"),
    (r"/vnffm/(v1/)?api_versions", "ApiVersionInformation"),
    (r"/vnfpm/v2/pm_jobs(/[^/]+)?", "PmJob"),
    (r"/vnfpm/v2/pm_jobs/[^/]+/reports/[^/]+", "PerformanceReport"),
    (r"/vnfpm/v2/thresholds(/[^/]+)?", "Threshold"),
    (r"/vnfpm/(v2/)?api_versions", "ApiVersionInformation"),
    (r"/vnfpkgm/v[12]/subscriptions(/[^/]+)?", "PkgmSubscription"),
    (r"/vnfpkgm/v[12]/(onboarded_)?vnf_packages(/[^/]+)?", "VnfPkgInfo"),
)
_CHANGED: Final = {
    "VnfSnapshotInfo": "VnfSnapshotInfoModifications",
    "Alarm": "AlarmModifications",
    "PmJob": "PmJobModifications",
    "Threshold": "ThresholdModifications",
}
"""The type that a PATCH answers with."""
_JUDGED: Final = (
    "/vnflcm/v2/",
    "/vnffm/",
    "/vnfpm/",
    "/vnfpkgm/v1/subscriptions",
    "/vnfpkgm/v2/subscriptions",
    "/vnfpkgm/v2/onboarded_vnf_packages",
)
Tree = dict[str, Any]


# --- corrected defects ---------------------------------------------------------------------------------------------------


def _without(name: str, key: str) -> Callable[[Tree], None]:
    def mend(definitions: Tree) -> None:
        del definitions[name][key]

    return mend


def _scale_level(definitions: Tree) -> None:
    """The file requires scaleLevel but declares scaleToLevel; the specification says scaleLevel."""
    properties = definitions["ScaleInfo"]["properties"]
    del properties["scaleToLevel"]
    properties["scaleLevel"] = {"type": "integer"}


def _snapshots(definitions: Tree) -> None:
    """The files require attributes of an earlier version, triggeredAt, vnfInfo and vnfcResourceId, which they do not declare.

    They also require vnfcSnapshots, which lists have to leave out unless it is asked for.
    """
    for name in ("VnfSnapshot", "VnfcSnapshotInfo"):
        of = definitions[name]
        undeclared = [one for one in of["required"] if one not in of["properties"]]
        assert undeclared
        of["required"] = [one for one in of["required"] if one in of["properties"] and one != "vnfcSnapshots"]


def _no_external_cps(definitions: Tree) -> None:
    """``extCpInfo`` has minItems 1; a CNF without external connection points has none."""
    info = definitions["VnfInstance"]["properties"]["instantiatedVnfInfo"]
    del info["properties"]["extCpInfo"]["minItems"]


def _alternatives(definitions: Tree) -> None:
    """The alternatives name vnfdId, but the attribute is vnfdIds; also, a filter may have none of them."""
    filters = definitions["VnfInstanceSubscriptionFilter"]
    assert filters["anyOf"][0]["oneOf"][0]["required"] == ["vnfdId"]
    del filters["anyOf"]


def _package_alternatives(definitions: Tree) -> None:
    """A filter may have none of the alternatives. The states are single values here but lists in SOL005's file."""
    filters = definitions["PkgmNotificationsFilter"]
    assert len(filters["anyOf"]) == 1
    del filters["anyOf"]
    for name in ("operationalState", "usageState"):
        one = {"$ref": filters["properties"][name]["$ref"]}
        filters["properties"][name] = {"type": "array", "items": one}


def _checksum(definitions: Tree) -> None:
    """The file has no definition of it; SOL003 clause 10.5.3.3 has an object."""
    assert definitions["Checksum"]["type"] == "string"
    text = {"type": "string"}
    properties = {"algorithm": text, "hash": text}
    definitions["Checksum"] = {"type": "object", "required": ["algorithm", "hash"], "properties": properties}


def _checksum_of_images(definitions: Tree) -> None:
    """An image outside of the package has no checksum unless the VNFD gives one."""
    definitions["VnfPackageSoftwareImageInfo"]["required"].remove("checksum")


def _metadata_of_vips(definitions: Tree) -> None:
    metadata = definitions["VipCpInfo"]["properties"]["metadata"]
    assert metadata["items"] is None
    definitions["VipCpInfo"]["properties"]["metadata"] = {"type": "object"}


def _deleted_configuration(definitions: Tree) -> None:
    """Null deletes an entry of cpConfig."""
    config = definitions["VnfExtCpData"]["properties"]["cpConfig"]
    config["additionalProperties"] = {"anyOf": [config["additionalProperties"], {"type": "null"}]}


def _reports(definitions: Tree) -> None:
    """``reports`` is a list (SOL003 6.5.2.7: 0..N)."""
    properties = definitions["PmJob"]["properties"]
    one = properties["reports"]
    assert one["type"] == "object"
    properties["reports"] = {"type": "array", "items": one}


def _values(definitions: Tree) -> None:
    """The file requires performanceValue but declares performanceValues, whose numbers it calls objects."""
    entry = definitions["PerformanceReport"]["properties"]["entries"]["items"]
    entry["required"].remove("performanceValue")
    entry["required"].append("performanceValues")
    value = entry["properties"]["performanceValues"]["items"]["properties"]["value"]
    assert value.pop("type") == "object"


def _value_of_crossing(definitions: Tree) -> None:
    """The file calls a number an object."""
    assert definitions["ThresholdCrossedNotification"]["properties"]["performanceValue"].pop("type") == "object"


def _number_bounds(definitions: Tree) -> None:
    """The file bounds each number by 1024, also periods in seconds; SOL003 has no bound."""
    criteria = definitions["PmJobCriteria"]["properties"]
    details = definitions["ThresholdCriteria"]["properties"]["simpleThresholdDetails"]["properties"]
    for number in (criteria["collectionPeriod"], criteria["reportingPeriod"], details["hysteresis"]):
        assert number.pop("maximum") == 1024


_MENDED: Final[Mapping[str, tuple[Callable[[Tree], None], ...]]] = {
    _GENERAL: (
        _alternatives,
        _scale_level,
        _checksum,
        _deleted_configuration,
        _without("IpOverEthernetAddressData", "oneOf"),  # meant for each of ipAddresses
    ),
    _LCM: (
        _snapshots,
        _no_external_cps,
        _metadata_of_vips,
        _without("VnfLcmOpOcc", "oneOf"),  # it requires one of two attributes; an ordinary occurrence has neither
        _without("IpOverEthernetAddressInfo", "oneOf"),  # meant for each of ipAddresses
    ),
    _PERFORMANCE: (_reports, _values, _number_bounds),
    _PERFORMANCE_NOTIFICATIONS: (_value_of_crossing,),
    _PACKAGES: (_package_alternatives, _checksum_of_images),
}


# --- the check --------------------------------------------------------------------------------------------------------


def misfit(validator: Validator, body: Any) -> str:
    """Return where a body does not match, with the reason; "" if it does."""
    try:
        validator.validate(body)
    except ValidationError as error:
        return f"/{'/'.join(map(str, error.instance_path))}: {error.message[:500]}"
    return ""


class EtsiSchemas:
    """The schemas of ETSI's files."""

    def __init__(self, folder: Path) -> None:
        base = folder / "nfv-sol002-sol003"
        resources = []
        for path in sorted(base.rglob("*.yaml")):
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
            name = path.relative_to(base).as_posix()
            for mend in _MENDED.get(name, ()):
                try:
                    mend(document["definitions"])
                except (AssertionError, KeyError, IndexError) as error:
                    raise AssertionError(f"{name}: no longer has the defect that {mend} mends") from error
            if "definitions" in document:  # each $ref names one; the rest has keys that are no strings
                resources.append((f"{_ROOT}{name}", {"definitions": document["definitions"]}))
        assert resources, f"{VARIABLE}: {folder} has no nfv-sol002-sol003"
        registry = Registry(resources, draft=Draft202012)
        self._validators = {
            name: Draft202012Validator({"$ref": f"{_ROOT}{file}#/definitions/{name}"}, registry=registry)
            for name, file in _FILE_BY_TYPE.items()
        }

    def check_type(self, name: str, body: Any) -> None:
        """Raise AssertionError if a body does not match the type."""
        wrong = misfit(self._validators[name], body)
        assert not wrong, f"ETSI's {name}: {wrong}"

    def check(self, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raise AssertionError if the response violates ETSI's schema. Resources without a schema are not checked."""
        path, _, query = path.partition("?")
        if "fields=" in query or "exclude_default" in query:
            return  # a selection may lack required attributes
        if "dry_run=" in query and status < 400:
            return  # ours: the plan
        if not path.startswith(_JUDGED) or not body or "json" not in headers.get("Content-Type", ""):
            return
        document = json.loads(body)
        if status >= 400:
            self.check_type("ProblemDetails", document)
            return
        name = next(name for pattern, name in _TYPE_BY_PATH if re.fullmatch(pattern, path))
        name = _CHANGED.get(name, name) if method == "PATCH" else name
        for each in document if isinstance(document, list) else [document]:
            self.check_type(name, each)


@cache
def etsi_schemas() -> EtsiSchemas | None:
    """Return the schemas, or None if ``$ETSI_OPENAPI`` is not set."""
    folder = os.environ.get(VARIABLE)
    return EtsiSchemas(Path(folder)) if folder else None
