"""Bring a VNF up (multicloud.md chapter 6): a new instance and its instantiation, stored together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

from kubevnfm_csar.artifact_order import ORDER, OWN_NAME
from kubevnfm_events import PackageRef
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import Secret
from kubevnfm_sol.lcm import CreateVnfRequest, InstantiateVnfRequest

from kubevnfm_lcm_api.lifecycle.containers.awaiting import AwaitPackageDraft
from kubevnfm_lcm_api.lifecycle.containers.drafts import InstantiateCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.ordering import ordered_namespace
from kubevnfm_lcm_api.lifecycle.core.cloud_place import CloudPlace, OnapFacts
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, Replacement
from kubevnfm_lcm_api.lifecycle.core.protected_namespaces import check_namespace
from kubevnfm_lcm_api.lifecycle.core.revision import Origin
from kubevnfm_lcm_api.lifecycle.requests.instantiate import draft_of
from kubevnfm_lcm_api.lifecycle.requests.services import RequestServices


@dataclass(frozen=True)
class AwaitedPackage:
    """The package of a request that is not held."""

    csar_id: str
    source: JsonMapping
    """Where it is; empty: in the operator's catalogue."""
    place: str
    """The member of the request that names it."""
    body: Secret
    """The request, as JSON."""
    limit_s: float
    """How long fetching may take."""


async def accept(
    on: RequestServices,
    wanted: CreateVnfRequest,
    package: PackageRef,
    cloud_region_id: str,
    asked: Asked[InstantiateVnfRequest],
    *,
    protected_namespaces: Collection[str],
    check_places: Callable[[str, ObjectsOrder], Awaitable[None]],
    instance_id: str | None,
    group_operation: str | None = None,
    onap: OnapFacts | None = None,
) -> tuple[InstanceRecord, str]:
    """Accept a new instance with its instantiation; return it as it was made, and the occurrence's id.

    ``check_places`` raises Conflict if objects of others have the names of those of the instance.
    ``instance_id``: None for a random one. All checks come before the one write, which stores the instance, claimed, with the message that wakes its operation: after
    a crash there is either nothing, or an instance whose operation goes on.
    Raises InvalidInput, Unprocessable, Conflict, and AlreadyExists for a name of ONAP; nothing was created then.
    """
    place = CloudPlace(cloud_region_id=cloud_region_id, namespace="", group_operation=group_operation, onap=onap)
    record, found = await prepared(
        on, wanted, package, place, asked, protected_namespaces=protected_namespaces, instance_id=instance_id
    )
    assert isinstance(found.draft, InstantiateCnfDraft)
    await check_places(record.vnf.id, found.draft.order)
    # The package may have been disabled since it was read.
    await on.packages.usable(package.vnfd_id)
    occurrence_id = await on.acceptance.accept_new(
        record, found.draft, asked, flavour=found.flavour, secret_names=found.secret_names
    )
    return record, occurrence_id


async def accept_awaiting(
    on: RequestServices,
    wanted: CreateVnfRequest,
    awaited: AwaitedPackage,
    region: tuple[str, str],
    parameters: JsonMapping,
    origin: Origin,
    *,
    protected_namespaces: Collection[str],
    instance_id: str | None,
) -> tuple[InstanceRecord, str]:
    """Accept a new instance whose package is fetched first; what needs the package is checked by the step that waits for it.

    ``region``: its id and that of its VIM; ``parameters``: the additionalParams of the instantiation. Raises as `accept`.
    """
    if on.is_granted_outside:
        # A grant is asked for with the resources of the package.
        raise Unprocessable(awaited.place, "not held, and an NFVO grants operations: fetch it first (POST /artifacts)")
    record = on.instances.of_awaited(wanted, awaited.csar_id, instance_id=instance_id)
    namespace = ordered_namespace(parameters, record.vnf.id)
    check_namespace(namespace, protected_namespaces)
    region_id, vim_id = region
    place = CloudPlace(cloud_region_id=region_id, namespace=namespace, vim_id=vim_id)
    record = record.with_internals(multicloud=place)
    draft = AwaitPackageDraft(
        vnf_instance_id=record.vnf.id,
        csar_id=awaited.csar_id,
        source=dict(awaited.source),
        place=awaited.place,
        body=awaited.body,
        by=origin.by,
        region_vim_id=vim_id,
        limit_s=awaited.limit_s,
    )
    # Without the values: it is not known yet which of them the package marks as secret.
    original = {"additionalParams": {"namespace": namespace}}
    asked = Asked(wanted, original, "v2", origin=origin)
    return record, await on.acceptance.accept_new(record, draft, asked, flavour=None, secret_names=())


async def prepared(
    on: RequestServices,
    wanted: CreateVnfRequest,
    package: PackageRef,
    place: CloudPlace,
    asked: Asked[InstantiateVnfRequest],
    *,
    protected_namespaces: Collection[str],
    instance_id: str | None,
) -> tuple[InstanceRecord, Replacement]:
    """Return a new instance with its instantiation after all checks but that of places; nothing is stored. Raises as `accept`.

    ``place``: without the namespace, which is known afterwards.
    """
    record = await on.instances.new(wanted, package, instance_id=instance_id)
    # The region is among the values of variables; the namespace is known with the draft.
    record = record.with_internals(multicloud=place)
    found = await draft_of(on, record, asked)
    draft = found.draft
    if not isinstance(draft, InstantiateCnfDraft) or draft.order_artifact is None or draft.namespace is None:
        raise Unprocessable(ORDER, f"the package has no order artifact ({OWN_NAME}): name a file of it")
    check_namespace(draft.namespace, protected_namespaces)
    place = place.model_copy(update={"namespace": draft.namespace, "vim_id": draft.vim_id})
    return record.with_internals(multicloud=place), found
