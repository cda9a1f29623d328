"""Heal of a CNF (capi.md CR-034): the pods to replace, or all its objects."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_sol.lcm import HealVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.domain.cnf_changes import HealCnfDraft
from kubevnfm_lcm_api.lifecycle.requests.acceptance import ApiVersion
from kubevnfm_lcm_api.lifecycle.requests.charts import chart_of
from kubevnfm_lcm_api.lifecycle.requests.cnf_under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.requests.variables import stored_variables
from kubevnfm_lcm_api.lifecycle.requests.vnfcs import resource_ids


def healed_cnf(
    vnf: CnfUnderChange, request: HealVnfRequest, original: Mapping[str, object], version: ApiVersion
) -> HealCnfDraft:
    """Return the draft; a request without ``vnfcInstanceId`` has all objects created again, at the present scale.

    Raises: InvalidInput for an unknown VNFC; Unprocessable.
    """
    names = set(resource_ids(request.vnfc_instance_id, vnf.info)) if request.vnfc_instance_id else set()
    internals = vnf.record.internals
    fields = vnf.fields(original, version, operation=OperationType.HEAL, asked=request)
    return HealCnfDraft(
        **fields,
        # A heal of everything begins with what there is, which a load balancer in front of it forwards to.
        release=None if names else vnf.release,
        namespace=vnf.release.namespace,
        multi_namespace=internals.parameters.get("multi_namespace", False),
        vdus=vnf.targets,
        chart=chart_of(vnf.record.vnf.id, vnf.flavour, internals.parameters, vnf.targets),
        parameters=internals.parameters,
        variables=stored_variables(internals.parameters),
        phases=internals.phases,
        pods=tuple(pod for pod in vnf.release.pods if pod.name in names),
        is_whole=not names,
    )
