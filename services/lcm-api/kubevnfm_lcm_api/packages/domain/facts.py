"""The attributes of VnfPkgInfo that come from the content of a package (SOL005 9.5.2.5; api.md 7.3)."""

from __future__ import annotations

from collections.abc import Sequence

from kubevnfm_csar.files import is_uri
from kubevnfm_csar.vnfd.model import SoftwareImage
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_lcm_api.packages.domain.ports import Foresight, OnboardedFiles


def facts_of(found: OnboardedFiles, *, created_at: str, foresee: Foresight, further: Sequence[str] = ()) -> JsonObject:
    """Return the attributes; optional ones without a value are absent.

    ``created_at``: of the images' records; ``further``: warnings beside those of the content.
    """
    package, vnfd = found.package, found.package.vnfd
    optional = {
        "softwareImages": [_image(found, image, created_at) for image in vnfd.software_images],
        "additionalArtifacts": [
            {
                "artifactPath": one.path,
                "checksum": one.checksum.model_dump(),
                "isEncrypted": one.path in found.encrypted,
                **({"artifactURI": [one.uri]} if one.uri else {}),
                **({"nonManoArtifactSetId": one.non_mano_set} if one.non_mano_set else {}),
                **({"artifactClassification": one.classification} if one.classification else {}),
                "metadata": {"contentType": one.content_type, "size": one.size_bytes},
            }
            for one in package.artifacts
        ],
        "vnfmInfo": list(vnfd.vnfm_info),
        "packageSecurityOption": found.security_option,
        "signingCertificate": found.certificate,
        "compatibleSpecificationVersions": list(package.specification_versions),
        "warnings": [*further, *package.warnings, *foresee(vnfd, package.base_hot_flavours)],
    }
    return {
        "vnfdId": vnfd.vnfd_id,
        "vnfProvider": vnfd.provider,
        "vnfProductName": vnfd.product_name,
        "vnfSoftwareVersion": vnfd.software_version,
        "vnfdVersion": vnfd.descriptor_version,
        **{name: value for name, value in optional.items() if value},
    }


def files_as_shown(document: JsonMapping) -> JsonObject:
    """Return the images and artifacts of a stored package, also of one that version 0.1.0 has onboarded."""
    return {
        name: [_file_as_shown(one) for one in document[name]]
        for name in ("softwareImages", "additionalArtifacts")
        if name in document
    }


def _file_as_shown(stored: JsonMapping) -> JsonObject:
    # 0.1.0 did not look for encrypted files, and had empty texts for a checksum that is not known.
    shown = {"isEncrypted": False, **stored}
    if "checksum" in shown and not shown["checksum"]["hash"]:
        del shown["checksum"]
    return shown


def _image(found: OnboardedFiles, image: SoftwareImage, created_at: str) -> JsonObject:
    package = found.package
    # An image outside of the package has a checksum only if the VNFD gives it.
    checksum = image.checksum or package.image_checksums.get(image.path or "")
    return {
        "id": image.image_id,
        "name": image.name,
        "provider": image.provider or package.vnfd.provider,
        "version": image.version,
        **({"checksum": checksum.model_dump()} if checksum else {}),
        "isEncrypted": image.path in found.encrypted,
        "containerFormat": image.container_format.upper(),
        "diskFormat": image.disk_format.upper(),
        "createdAt": created_at,
        "minDisk": image.min_disk_bytes,
        "minRam": image.min_ram_bytes,
        "size": image.size_bytes,
        "imagePath": image.path or "",
        **({"imageUri": image.uri} if image.uri is not None and is_uri(image.uri) else {}),
    }
