"""The files of a package as the drivers get them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from kubevnfm_events.common import PackageRef
from kubevnfm_kit.errors import NotFound
from kubevnfm_mgmt_executor.adapters.package_files import FetchedPackage

SAVED = "Files/images/private_registry.tar"


class WithoutImages:
    """A package as lcm-api gives it: a folder without what is below ``Files/images``, and single files."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        self.asked: list[str] = []

    async def folder(self, package: PackageRef) -> Path:
        return self.root

    async def stream(self, package: PackageRef, path: str) -> AsyncIterator[bytes]:
        self.asked.append(path)
        if path != SAVED:
            raise NotFound(f"no file {path}")
        yield b"first "
        yield b"second"


async def test_the_image_of_a_registry_is_read_from_beside_the_images_of_machines(tmp_path: Path) -> None:
    """SEQ-117: the sample of the guide has it at ``Files/images/private_registry.tar``."""
    root = tmp_path / "package"
    (root / "Scripts").mkdir(parents=True)
    (root / "Scripts/install.sh").write_bytes(b"here")
    (tmp_path / "secret").write_bytes(b"of this host")
    (root / "Scripts/link").symlink_to(tmp_path / "secret")
    packages = WithoutImages(root)
    package = FetchedPackage(packages, PackageRef(package_id="p", vnfd_id="d"))
    assert await package.read(SAVED) == b"first second"
    assert await package.read("Scripts/install.sh") == b"here"
    assert await package.read("Files/images/other.tar") is None
    asked = [*packages.asked]
    assert asked == [SAVED, "Files/images/other.tar"]
    for outside in ("../secret", "Scripts/link", "Scripts"):
        assert await package.read(outside) is None, outside
    assert packages.asked == asked, "no file of this host, and no folder, is asked for elsewhere"
