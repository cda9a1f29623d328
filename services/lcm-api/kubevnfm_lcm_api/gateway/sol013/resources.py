"""The shapes of what can be listed: SOL types plus what each API version shows beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kubevnfm_sol.lcm import VnfInstance, VnfLcmOpOcc

from kubevnfm_lcm_api.gateway.sol013.shapes import Attribute, Shape, attributes_of

_INSTANCE: Final = attributes_of(VnfInstance)
_INSTANCE_EXCLUDED: Final = frozenset(
    {"vnfConfigurableProperties", "vimConnectionInfo", "instantiatedVnfInfo", "metadata", "extensions"}
)
INSTANCE_V2: Final = Shape(
    {name: attribute for name, attribute in _INSTANCE.items() if name != "vnfPkgId"}, _INSTANCE_EXCLUDED
)
INSTANCE_V1: Final = Shape(
    {
        **_INSTANCE,
        "vimConnectionInfo": replace(
            _INSTANCE["vimConnectionInfo"],
            no_filter="a list here, kept as a map; /vnflcm/v2 filters by vimConnectionInfo/<key>/...",
        ),
    },
    _INSTANCE_EXCLUDED,
)

_OCCURRENCE: Final = attributes_of(VnfLcmOpOcc)
_V2_OCCURRENCE: Final = "modificationsTriggeredByVnfPkgChange"
OCCURRENCE_V2: Final = Shape(
    _OCCURRENCE,
    frozenset({"operationParams", "error", "resourceChanges", "changedInfo", "changedExtConnectivity", _V2_OCCURRENCE}),
)
OCCURRENCE_V1: Final = Shape(
    {
        **{name: one for name, one in _OCCURRENCE.items() if name != _V2_OCCURRENCE},
        "operationParams": Attribute("free", is_required=True),
    },
    frozenset({"error", "resourceChanges", "changedInfo", "changedExtConnectivity"}),
)

_TEXT: Final = Attribute("string")
_CHECKSUM: Final = Attribute("object", {"algorithm": _TEXT, "hash": _TEXT})
PACKAGE: Final = Shape(
    {
        **dict.fromkeys(("vnfdId", "vnfProvider", "vnfProductName", "vnfSoftwareVersion", "vnfdVersion"), _TEXT),
        **{
            name: Attribute("string", is_required=True)
            for name in ("id", "onboardingState", "operationalState", "usageState")
        },
        "checksum": _CHECKSUM,
        "softwareImages": Attribute(
            "array",
            {
                **dict.fromkeys(
                    ("id", "name", "provider", "version", "containerFormat", "diskFormat", "imagePath"), _TEXT
                ),
                **{name: Attribute("number") for name in ("minDisk", "minRam", "size")},
                "createdAt": Attribute("datetime"),
                "checksum": _CHECKSUM,
            },
            "object",
        ),
        "additionalArtifacts": Attribute(
            "array", {"artifactPath": _TEXT, "checksum": _CHECKSUM, "nonManoArtifactSetId": _TEXT}, "object"
        ),
        "packageSecurityOption": _TEXT,
        "signingCertificate": _TEXT,
        "vnfmInfo": Attribute("array"),
        "userDefinedData": Attribute("free"),
        "onboardingFailureDetails": Attribute(
            "object", {"type": _TEXT, "title": _TEXT, "detail": _TEXT, "status": Attribute("number")}
        ),
    },
    frozenset({"softwareImages", "additionalArtifacts", "userDefinedData", "checksum"}),
)
PACKAGE_SUBSCRIPTION: Final = Shape(
    {
        "id": Attribute("string", is_required=True),
        "callbackUri": Attribute("string", is_required=True),
        "filter": Attribute("free"),
    }
)
SUBSCRIPTION: Final = Shape({**PACKAGE_SUBSCRIPTION.attributes, "verbosity": Attribute("string", is_required=True)})
