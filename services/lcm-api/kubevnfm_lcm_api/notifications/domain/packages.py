"""Subscriptions to VNF packages, and their notifications: a package was onboarded, or has changed.

SOL003 V3.7.1 clauses 10.5.2.3 to 10.5.2.6 and 10.5.3.4, and SOL005 clause 9.5, which say the same; api.md 7.1 and 7.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self, get_args
from urllib.parse import quote

from kubevnfm_events import Message
from kubevnfm_events.lcm import PackageChanged
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_sol.base import SolRequest
from kubevnfm_sol.packages import OperationalState, UsageState
from pydantic import BeforeValidator, model_validator

from kubevnfm_lcm_api.notifications.domain.subscription import (
    ANY,
    Announcement,
    Provider,
    SubscriptionRequest,
    ToAnnouncement,
    alternatives,
    product_keys,
    wanted_products,
)

_ONBOARDING: Final = "VnfPackageOnboardingNotification"
_CHANGE: Final = "VnfPackageChangeNotification"
NotificationType = Literal["VnfPackageOnboardingNotification", "VnfPackageChangeNotification"]
_STATE_AFTER: Final[Mapping[str, OperationalState]] = {
    "ONBOARDED": "ENABLED",
    "ENABLED": "ENABLED",
    "DISABLED": "DISABLED",
    "DELETED": "DISABLED",  # nothing else can be deleted
}
"""By the change that is notified; there is no notification of the others."""


def _listed(given: Any) -> Any:
    """Return a single value as a list: SOL003 has a single value where SOL005 has a list, and the reverse."""
    return [given] if isinstance(given, str) else given


class PkgmNotificationsFilter(SolRequest):
    """Clause 10.5.3.4. A single value is accepted instead of a list in notificationTypes, operationalState and usageState."""

    notification_types: Annotated[tuple[NotificationType, ...], BeforeValidator(_listed)] = ()
    vnf_products_from_providers: tuple[Provider, ...] = ()
    """An alternative to ``vnfdId`` and ``vnfPkgId``; each that is given must match."""
    vnfd_id: tuple[str, ...] = ()
    vnf_pkg_id: tuple[str, ...] = ()
    """This and the states are only allowed if the types include changes."""
    operational_state: Annotated[tuple[OperationalState, ...], BeforeValidator(_listed)] = ()
    usage_state: Annotated[tuple[UsageState, ...], BeforeValidator(_listed)] = ()
    vnfm_info: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _states_of_changes(self) -> Self:
        of_changes = {
            "vnfPkgId": self.vnf_pkg_id,
            "operationalState": self.operational_state,
            "usageState": self.usage_state,
        }
        given = [name for name, values in of_changes.items() if values]
        if given and self.notification_types and _CHANGE not in self.notification_types:
            raise ValueError(f"{' and '.join(given)}: expected with {_CHANGE} in notificationTypes only")
        return self


class PkgmSubscriptionRequest(SubscriptionRequest):
    """Clause 10.5.2.3."""

    filter: PkgmNotificationsFilter = PkgmNotificationsFilter()

    def keys(self) -> dict[str, list[str]]:
        """Types are named even where any fits: ``*`` there is any news of life cycles."""
        of = self.filter
        ids, vnfds = [f"id:{i}" for i in of.vnf_pkg_id], [f"vnfd:{i}" for i in of.vnfd_id]
        return {
            "types": list(of.notification_types or get_args(NotificationType)),
            **alternatives("packages", ids, vnfds, wanted_products(of.vnf_products_from_providers)),
            "states": list(of.operational_state) or [ANY],
            "usages": list(of.usage_state) or [ANY],
            "vnfms": list(of.vnfm_info) or [ANY],
        }


def _changed(event: PackageChanged) -> Announcement | None:
    """Only an onboarded package has a VNFD, and only its changes are notified (clauses 10.5.2.5 and 10.5.2.6)."""
    state = _STATE_AFTER.get(event.change)
    if state is None or not event.vnfd_id:
        return None
    type_ = _ONBOARDING if event.change == "ONBOARDED" else _CHANGE
    names = (event.vnf_provider, event.vnf_product_name, event.vnf_software_version, event.vnfd_version)
    attributes: JsonObject = {"vnfPkgId": event.vnf_pkg_id, "vnfdId": event.vnfd_id}
    if type_ == _ONBOARDING:
        attributes["vnfmInfo"] = list(event.vnfm_info)
    elif event.change == "DELETED":
        attributes["changeType"] = "PKG_DELETE"
    else:
        attributes |= {"changeType": "OP_STATE_CHANGE", "operationalState": state}
    return Announcement(
        type_,
        {
            "types": [type_],
            "packages": [ANY, f"id:{event.vnf_pkg_id}", f"vnfd:{event.vnfd_id}", *product_keys(*names)],
            "states": [ANY, state],
            "usages": [ANY, event.usage_state],
            "vnfms": [ANY, *event.vnfm_info],
        },
        lambda _: attributes,
        {
            "vnfPackage": f"/vnf_packages/{event.vnf_pkg_id}",
            "vnfPackageByVnfdId": f"/onboarded_vnf_packages/{quote(event.vnfd_id, safe='')}",
        },
        follows=event.follows,
        follows_at=event.follows_at,
        is_last=event.change == "DELETED",
    )


PACKAGE_ANNOUNCEMENTS: Final[Mapping[type[Message], ToAnnouncement]] = {PackageChanged: _changed}
