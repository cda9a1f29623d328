"""The permissions of a region that are shown as missing (multicloud.md MC-073)."""

from __future__ import annotations

from kubevnfm_vim_registry.domain.region import RESTART, USEFUL, Inspected


def test_the_restart_of_machines_is_missed_only_where_kubevirt_is_served() -> None:
    """MC-073, MC-063."""
    lacking = frozenset({RESTART, USEFUL[0]})
    shown = ("list nodes", "update virtualmachines.subresources.kubevirt.io/restart")
    assert Inspected("", ("apps", "kubevirt.io"), lacking).missing_permissions == shown
    assert Inspected("", ("apps",), lacking).missing_permissions == shown[:1]
    assert Inspected("", ("kubevirt.io",), frozenset()).missing_permissions == ()
