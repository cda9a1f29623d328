"""Heal of a CNF (capi.md CR-034, CR-121): the pods to replace, all its objects, or those that others have changed."""

from __future__ import annotations

from typing import Final

from kubevnfm_csar.pod_templates import MACHINE_TEMPLATES, POD_TEMPLATES
from kubevnfm_sol.lcm import HealVnfRequest, OperationType

from kubevnfm_lcm_api.lifecycle.containers.changing import HealCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.repair import asks_for_repair
from kubevnfm_lcm_api.lifecycle.containers.under_change import CnfUnderChange
from kubevnfm_lcm_api.lifecycle.core.drift import check_objects_exist
from kubevnfm_lcm_api.lifecycle.core.kind import Asked
from kubevnfm_lcm_api.lifecycle.core.vnfcs import resource_ids

_OWN_WORKLOADS: Final = frozenset(
    kind for (_, kind), path in (*POD_TEMPLATES.items(), *MACHINE_TEMPLATES.items()) if not path
)
"""The kinds of pods and machines themselves."""


def healed_cnf(vnf: CnfUnderChange, asked: Asked[HealVnfRequest]) -> HealCnfDraft:
    """Return the draft; a request without ``vnfcInstanceId`` has all objects created again, at the present scale.

    Raises: InvalidInput for an unknown VNFC; Unprocessable; Drifted if the workload of a VNFC was found deleted.
    """
    is_repair = asks_for_repair(asked.request)
    names = set(resource_ids(asked.request.vnfc_instance_id, vnf.info)) if asked.request.vnfc_instance_id else set()
    pods = tuple(pod for pod in vnf.release.pods if pod.name in names)
    # A pod or machine without a workload is created again from its manifest.
    workloads = {pod.vdu_id for pod in pods if pod.owner_kind not in _OWN_WORKLOADS}
    check_objects_exist(vnf.record, (one for one in vnf.release.objects if one.vdu_id in workloads), "heal")
    internals = vnf.record.internals
    return HealCnfDraft(
        **{
            **vars(vnf.change(asked, OperationType.HEAL)),
            # A heal of everything begins with what there is, which a load balancer in front of it forwards to.
            "release": None if names or is_repair else vnf.release,
        },
        parameters=internals.parameters,
        phases=internals.phases,
        pods=pods,
        is_whole=not names and not is_repair,
        is_repair=is_repair,
    )
