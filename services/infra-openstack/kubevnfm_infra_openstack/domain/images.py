"""Which images of a package are uploaded to Glance, and how an uploaded image is found again."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator

from kubevnfm_csar.files import inside
from kubevnfm_csar.vnfd.model import Flavour, SoftwareImage, Storage, Vdu
from kubevnfm_events import PackageRef


def package_images(vnfd: Flavour) -> Iterator[SoftwareImage]:
    """Yield the images of VDUs and storages for which the VNFD names a file; the others exist in Glance already."""
    # A VDU that boots from a volume has its image at the storage.
    parts: list[Vdu | Storage] = [*vnfd.vdus.values(), *vnfd.storages.values()]
    for part in parts:
        if part.image is not None and any(True for _ in image_paths(part.image, vnfd)):
            yield part.image


def image_paths(image: SoftwareImage, vnfd: Flavour) -> Iterator[str]:
    """Yield the paths in the CSAR at which the image's file may be.

    The VNFD's reference is relative to the referring file (TOSCA) or to the CSAR's root (Tacker's v1 packages).
    """
    if image.path is not None:
        yield image.path
    elif image.uri is not None and "://" not in image.uri:
        for base in dict.fromkeys((posixpath.dirname(vnfd.file), "")):
            path = inside(posixpath.normpath(posixpath.join(base, image.uri)))
            if path is not None:
                yield path


def image_identity(image: SoftwareImage, package: PackageRef) -> str:
    """Return the image's name in Glance: its own name and a short digest of its content."""
    # Without a checksum in the VNFD, package and path identify the content: packages do not change.
    checksum = image.checksum.hash if image.checksum is not None else ""
    content = checksum or f"{package.checksum or package.package_id}/{image.path or image.uri}"
    return f"{image.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
