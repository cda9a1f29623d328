"""The errors of VNF packages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from kubevnfm_kit.errors import NotFound, PlacedError, VnfmError
from kubevnfm_secrets import shown_url

_RULE_LENGTH: Final = 1000


class External(Protocol):
    """An artifact outside of a package, with its digest as the package lists it."""

    @property
    def uri(self) -> str: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def hash(self) -> str: ...


class PackageRefused(VnfmError, code="package-refused", title="VNF package refused", status=400):
    """The package breaks a rule and must be replaced. ``file`` and ``rule`` say where and which."""

    def __init__(self, rule: str, *, file: str = "") -> None:
        # A rule may quote a value of the package, which may have megabytes.
        rule = rule if len(rule) <= _RULE_LENGTH else f"{rule[:_RULE_LENGTH]} ..."
        super().__init__(f"{file}: {rule}" if file else rule)
        self.file, self.rule = file, rule


class ExternalMissing(PackageRefused, code="external-artifact-missing"):
    """The package lists artifacts outside of it that have not been fetched."""

    def __init__(self, missing: Sequence[External]) -> None:
        super().__init__("listed outside of the package, and not fetched", file=shown_url(missing[0].uri))
        self.missing = missing


class PlacementUnsupported(
    PlacedError, code="placement-unsupported", title="Placement rule not supported", template="policy {place}: {reason}"
):
    """A rule of the VNFD for the placement of machines cannot be kept."""


class UnknownFlavour(NotFound, code="unknown-flavour"):
    """The VNFD has no such deployment flavour."""

    def __init__(self, flavour_id: str, *, known: tuple[str, ...]) -> None:
        super().__init__(f"flavour {flavour_id}: the VNFD has {', '.join(known) or 'none'}")
        self.flavour_id, self.known = flavour_id, known


class UnknownLevel(NotFound, code="unknown-instantiation-level"):
    """The flavour has no such instantiation level."""

    def __init__(self, level_id: str, *, known: tuple[str, ...]) -> None:
        super().__init__(f"instantiation level {level_id}: the flavour has {', '.join(known) or 'none'}")
        self.level_id, self.known = level_id, known
