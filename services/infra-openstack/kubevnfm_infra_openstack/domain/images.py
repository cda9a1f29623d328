"""Which images of a package go to Glance, and how one is recognised there."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Iterator

from kubevnfm_csar import Flavour, SoftwareImage, Storage, Vdu, inside
from kubevnfm_events import PackageRef


def package_images(vnfd: Flavour) -> Iterator[SoftwareImage]:
    """Yield the images of VDUs and storages for which the VNFD names a file; others are in Glance by their name."""
    parts: list[Vdu | Storage] = [*vnfd.vdus.values(), *vnfd.storages.values()]
    for part in parts:
        if part.image is not None and any(True for _ in image_paths(part.image, vnfd)):
            yield part.image


def image_paths(image: SoftwareImage, vnfd: Flavour) -> Iterator[str]:
    """Yield the paths in the CSAR where the image's file may lie.

    The VNFD's reference counts from the file that refers (TOSCA) or from the CSAR's root (Tacker's v1 packages).
    """
    if image.path is not None:
        yield image.path
    elif image.uri is not None and "://" not in image.uri:
        for base in dict.fromkeys((posixpath.dirname(vnfd.file), "")):
            path = inside(posixpath.normpath(posixpath.join(base, image.uri)))
            if path is not None:
                yield path


def image_identity(image: SoftwareImage, package: PackageRef) -> str:
    """Return the image's name in Glance: its own, and a short digest of its content or, untold, of where it is from."""
    checksum = image.checksum.hash if image.checksum is not None else ""
    content = checksum or f"{package.checksum or package.package_id}/{image.path or image.uri}"
    return f"{image.name}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
