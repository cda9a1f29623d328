"""GrantRequest to an NFVO: an operation's request without secrets, with links to this VNFM. Pure."""

from __future__ import annotations

from typing import Any

from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_secrets import without_secrets

from kubevnfm_lcm_api.lifecycle.core.draft import Draft
from kubevnfm_lcm_api.lifecycle.core.grant_request import grant_request
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord


def nfvo_grant_request(record: OccurrenceRecord, draft: Draft, flavour: Flavour | None, *, root: str) -> dict[str, Any]:
    """Return the request.

    ``flavour``: None if the operation is not made from a flavour; ``root``: the public URL of this VNFM.
    """
    occ, base = record.occ, f"{root}/vnflcm/{record.api_version}"
    # An NFVO needs no passwords of machines to decide, and other systems log requests.
    parameters = without_secrets(occ.operation_params.get("additionalParams") or {})
    return {
        **grant_request(occ, record.facts.vnfd_id, draft, flavour, draft.grant_resources(flavour), parameters),
        "_links": {
            "vnfLcmOpOcc": {"href": f"{base}/vnf_lcm_op_occs/{occ.id}"},
            "vnfInstance": {"href": f"{base}/vnf_instances/{occ.vnf_instance_id}"},
        },
    }
