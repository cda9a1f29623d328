"""The attributes and the list of VNF packages (SOL005 clause 9.5.2.5)."""

from __future__ import annotations

from typing import Final

from kubevnfm_store.query import by

from kubevnfm_lcm_api.http.listing import Listed
from kubevnfm_lcm_api.http.sol013.shapes import Attribute, Shape

_TEXT: Final = Attribute("string")
_FLAG: Final = Attribute("boolean")
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
                    ("id", "name", "provider", "version", "containerFormat", "diskFormat", "imagePath", "imageUri"),
                    _TEXT,
                ),
                **{name: Attribute("number") for name in ("minDisk", "minRam", "size")},
                "createdAt": Attribute("datetime"),
                "checksum": _CHECKSUM,
                "isEncrypted": _FLAG,
            },
            "object",
        ),
        "additionalArtifacts": Attribute(
            "array",
            {
                **dict.fromkeys(("artifactPath", "nonManoArtifactSetId", "artifactClassification"), _TEXT),
                "artifactURI": Attribute("array"),
                "checksum": _CHECKSUM,
                "isEncrypted": _FLAG,
                "metadata": Attribute("free"),
            },
            "object",
        ),
        "packageSecurityOption": _TEXT,
        "signingCertificate": _TEXT,
        "vnfmInfo": Attribute("array"),
        "compatibleSpecificationVersions": Attribute("array"),
        "warnings": Attribute("array"),
        "userDefinedData": Attribute("free"),
        "onboardingFailureDetails": Attribute(
            "object", {"type": _TEXT, "title": _TEXT, "detail": _TEXT, "status": Attribute("number")}
        ),
    },
    frozenset({"softwareImages", "additionalArtifacts", "userDefinedData", "checksum"}),
)
EVERY_PACKAGE: Final = Listed("packages", PACKAGE, "createdAt")
ONBOARDED_PACKAGES: Final = Listed("onboarded-packages", PACKAGE, "createdAt", by(onboardingState="ONBOARDED"))
