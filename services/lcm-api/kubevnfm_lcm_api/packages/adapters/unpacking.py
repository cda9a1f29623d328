"""Checks an uploaded CSAR and unpacks it. Everything here blocks, and runs in a process of its own (`unpacking_child`)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from kubevnfm_csar.archive import Csar, extract, open_csar
from kubevnfm_csar.artifact_order import order_paths
from kubevnfm_csar.encryption import encrypted_files
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.package import describe
from kubevnfm_csar.signed import signed_archive
from kubevnfm_csar.values_schema import LARGEST, SchemaRefused, read_schema, schema_path

from kubevnfm_lcm_api.packages.adapters.package_folder import (
    ARCHIVE,
    CONTENT,
    EXTERNAL,
    FILES,
    SCRATCH,
    SELECTIONS,
    drop_scratch,
)
from kubevnfm_lcm_api.packages.adapters.schema_rules import NoSchema, compiled
from kubevnfm_lcm_api.packages.adapters.signatures import PackageSignatures, Signing
from kubevnfm_lcm_api.packages.domain.ports import OnboardedFiles


def unpack(folder: Path, signatures: PackageSignatures) -> OnboardedFiles:
    """Check the CSAR in a package's folder and unpack it there. Raises PackageRefused; OSError."""
    target = folder / FILES
    # A crash may have ended an earlier try of this command halfway.
    drop_scratch(folder)
    for old in (target, folder / SELECTIONS):
        shutil.rmtree(old, ignore_errors=True)
    (folder / ARCHIVE).unlink(missing_ok=True)
    limits = Limits()
    # On the disk for packages: the system's temporary folder may be too small for a CSAR.
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=folder) as scratch:
        outer = signed_archive(folder / CONTENT, limits=limits)
        path, signing = (folder / CONTENT, Signing())
        if outer is not None:
            path, signing = signatures.outer(outer, Path(scratch))
        with open_csar(path, limits=limits, external=folder / EXTERNAL) as csar:
            # Before the files are unpacked: a package without a valid VNFD is refused without writing them.
            package = describe(csar)
            _check_schemas(csar)
            files = Path(scratch, FILES)
            extract(csar, files)
            if outer is None:
                signing = signatures.inner(csar, package, files)
        encrypted = encrypted_files(files, package.files)
        # A process that was given up may still write: it has another folder, and it no longer gets here.
        files.replace(target)
    return OnboardedFiles(package, signing.option, signing.certificate, encrypted)


def _check_schemas(csar: Csar) -> None:
    """Raise PackageRefused for what is no schema beside an order artifact (multicloud.md MC-022)."""
    names = csar.names()
    for path in dict.fromkeys(map(schema_path, order_paths(names))):
        if path in names:
            if csar.size(path) > LARGEST:
                raise PackageRefused(f"at most {LARGEST} bytes expected", file=path)
            with csar.open(path) as file:
                text = file.read().decode(errors="replace")
            try:
                compiled(read_schema(path, text).body)
            except (SchemaRefused, NoSchema) as error:
                raise PackageRefused(str(error), file=path) from error
