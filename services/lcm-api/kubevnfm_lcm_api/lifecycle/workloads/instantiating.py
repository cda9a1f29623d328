"""Instantiate of a workload cluster: a CNF whose objects are those of Cluster API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_kit.errors import Unprocessable

from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.instantiating import manifest_files
from kubevnfm_lcm_api.lifecycle.core.request_parameters import CAPI
from kubevnfm_lcm_api.lifecycle.workloads.capi import capi_parameters, with_sender
from kubevnfm_lcm_api.lifecycle.workloads.drafts import InstantiateWorkloadDraft


def workload_draft(
    draft: InstantiateCnfDraft, parameters: Mapping[str, Any], files: frozenset[str]
) -> InstantiateWorkloadDraft:
    """Return the draft; ``draft``: the same for a CNF. Raises InvalidInput, Unprocessable naming the field."""
    capi = capi_parameters(parameters[CAPI], lambda listed, place: manifest_files(listed, files, place=place))
    if draft.phases or draft.chart is not None:
        why = "a workload cluster comes from manifests, without a Helm chart and management drivers: leave it out"
        raise Unprocessable(f"additionalParams/{CAPI}", why)
    return InstantiateWorkloadDraft(**vars(draft), capi=with_sender(capi, parameters[CAPI], draft.scripts))
