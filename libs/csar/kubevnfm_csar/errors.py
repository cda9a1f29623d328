"""The errors of VNF packages."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.errors import NotFound, PlacedError, VnfmError

_RULE_LENGTH: Final = 1000


class PackageRefused(VnfmError):
    """The package breaks a rule and must be replaced. ``file`` and ``rule`` say where and which."""

    code = "package-refused"
    title = "VNF package refused"
    status = 400

    def __init__(self, rule: str, *, file: str = "") -> None:
        # A rule may quote a value of the package, which may have megabytes.
        rule = rule if len(rule) <= _RULE_LENGTH else f"{rule[:_RULE_LENGTH]} ..."
        super().__init__(f"{file}: {rule}" if file else rule)
        self.file, self.rule = file, rule


class PlacementUnsupported(PlacedError):
    """A rule of the VNFD for the placement of machines cannot be kept."""

    code = "placement-unsupported"
    title = "Placement rule not supported"
    template = "policy {place}: {reason}"


class UnknownFlavour(NotFound):
    """The VNFD has no such deployment flavour."""

    code = "unknown-flavour"

    def __init__(self, flavour_id: str, *, known: tuple[str, ...]) -> None:
        super().__init__(f"flavour {flavour_id}: the VNFD has {', '.join(known) or 'none'}")
        self.flavour_id, self.known = flavour_id, known


class UnknownLevel(NotFound):
    """The flavour has no such instantiation level."""

    code = "unknown-instantiation-level"

    def __init__(self, level_id: str, *, known: tuple[str, ...]) -> None:
        super().__init__(f"instantiation level {level_id}: the flavour has {', '.join(known) or 'none'}")
        self.level_id, self.known = level_id, known
