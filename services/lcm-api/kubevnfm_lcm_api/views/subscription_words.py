"""The filter of a subscription in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.views.causes.wording import line

_MOST: Final = 10
"""Values that are named; the number of the others is said."""
_LONGEST: Final = 80
_OF_SOL: Final[Mapping[str, str]] = {
    "notificationTypes": "notifications",
    "operationTypes": "operations",
    "operationStates": "states",
    "vnfdIds": "VNFDs",
    "vnfInstanceIds": "VNF instances",
    "vnfInstanceNames": "VNF instances named",
    "vnfdId": "VNFDs",
    "vnfPkgId": "packages",
    "operationalState": "operational states",
    "usageState": "usage states",
    "vnfmInfo": "VNFMs",
    "perceivedSeverities": "severities",
    "eventTypes": "event types",
    "probableCauses": "probable causes",
    "faultyResourceTypes": "faulty resources",
}
_OF_CHANGES: Final[Mapping[str, str]] = {"types": "changes", "vnf_ids": "VNFs", "cloud_region_ids": "cloud regions"}
_INSTANCES: Final = "vnfInstanceSubscriptionFilter"
_PRODUCTS: Final = "vnfProductsFromProviders"


def filter_words(document: JsonMapping) -> list[str]:
    """Return what a stored subscription is to, one entry for each attribute of its filter; none: it is to everything."""
    onap = document.get("onap")
    if onap:
        return [f"pods of the VNF instance {line(str(onap.get('instanceName', '')), _LONGEST)}"]
    if document.get("apiVersion") == "multicloud":
        return list(_lists(document.get("shownFilter") or {}, _OF_CHANGES))
    wanted = document.get("filter") or {}
    of_instances = wanted.get(_INSTANCES) or {}
    found = [*_lists(wanted, _OF_SOL), *_lists(of_instances, _OF_SOL)]
    products = [*(wanted.get(_PRODUCTS) or ()), *(of_instances.get(_PRODUCTS) or ())]
    if products:
        found.append(f"products of {_some(_products(products))}")
    return found


def _lists(wanted: JsonMapping, names: Mapping[str, str]) -> Iterator[str]:
    for attribute, words in names.items():
        values = wanted.get(attribute)
        if values:
            yield f"{words} {_some(map(str, values))}"


def _products(providers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for provider in providers:
        name = str(provider.get("vnfProvider", ""))
        products = provider.get("vnfProducts") or ()
        if not products:
            yield name
        for product in products:
            versions = [str(each.get("vnfSoftwareVersion", "")) for each in product.get("versions") or ()]
            yield " ".join([name, str(product.get("vnfProductName", "")), *versions[:_MOST]])


def _some(values: Iterable[str]) -> str:
    given = list(values)
    named = ", ".join(line(each, _LONGEST) for each in given[:_MOST])
    return named if len(given) <= _MOST else f"{named} and {len(given) - _MOST} more"
