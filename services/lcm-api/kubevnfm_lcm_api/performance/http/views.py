"""The forms of PM jobs and thresholds in answers, and the types that describe them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kubevnfm_kit.json_types import JsonMapping, JsonObject
from kubevnfm_secrets import shown_url
from kubevnfm_sol.performance import PmJob, Threshold
from kubevnfm_store.query import Stored
from pydantic import Field

from kubevnfm_lcm_api.http.models import Link, Shown
from kubevnfm_lcm_api.performance.domain.monitoring import LAST_ERROR

BASE: Final = "/vnfpm/v2"
JOBS: Final = f"{BASE}/pm_jobs"
THRESHOLDS: Final = f"{BASE}/thresholds"
_INSTANCES: Final = "/vnflcm/v2/vnf_instances"
_OPTIONAL: Final = ("subObjectInstanceIds", "metadata")


class JobLinks(Shown):
    """The links of a PM job."""

    self: Link
    objects: list[Link]


class ShownJob(PmJob):
    """A PM job with its links."""

    links: JobLinks = Field(alias="_links")


class ThresholdLinks(Shown):
    """The links of a threshold."""

    self: Link
    object: Link


class ShownThreshold(Threshold):
    """A threshold with its links."""

    links: ThresholdLinks = Field(alias="_links")


@dataclass(frozen=True)
class ShownRevision:
    """A resource with the number of its shown changes: measuring alone does not change its entity tag."""

    id: str
    revision: int

    @classmethod
    def from_stored(cls, stored: Stored) -> ShownRevision:
        """Return that of a document."""
        return cls(stored.id, stored.body["internal"]["shown"])


def job_view(document: JsonMapping, reports: Sequence[JsonMapping], root: str) -> JsonObject:
    """Return a PmJob; authentication, and the values of the address's query, are never shown."""
    own = f"{root}{JOBS}/{document['id']}"
    links = report_links(document, reports, root)
    shown = [{name: each[name] for name in ("href", "readyTime", "expiryTime")} for each in links]
    objects = [{"href": f"{root}{_INSTANCES}/{each}"} for each in document["objectInstanceIds"]]
    return {
        **_common(document),
        "objectInstanceIds": document["objectInstanceIds"],
        "criteria": document["criteria"],
        **({"reports": shown} if shown else {}),
        "_links": {"self": {"href": own}, "objects": objects},
    }


def report_links(document: JsonMapping, reports: Sequence[JsonMapping], root: str) -> Sequence[JsonObject]:
    """Return reports of a job with their links and times."""
    own, times = f"{root}{JOBS}/{document['id']}/reports", ("begin", "end", "readyTime", "expiryTime")
    return [{"href": f"{own}/{each['id']}", **{name: each[name] for name in times}} for each in reports]


def threshold_view(document: JsonMapping, root: str) -> JsonObject:
    """Return a Threshold."""
    instance = {"href": f"{root}{_INSTANCES}/{document['objectInstanceId']}"}
    return {
        **_common(document),
        "objectInstanceId": document["objectInstanceId"],
        "criteria": document["criteria"],
        "_links": {"self": {"href": f"{root}{THRESHOLDS}/{document['id']}"}, "object": instance},
    }


def _common(document: JsonMapping) -> JsonObject:
    shown = {name: document[name] for name in _OPTIONAL if name in document}
    if error := document["internal"].get("error"):
        shown["metadata"] = {**shown.get("metadata", {}), LAST_ERROR: error}
    return {
        "id": document["id"],
        "objectType": document["objectType"],
        "callbackUri": shown_url(document["callbackUri"]),
        **shown,
    }
