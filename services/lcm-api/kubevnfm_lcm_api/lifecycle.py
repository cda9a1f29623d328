"""What a request means: checks it against package, VIM and instance, and makes the operation that carries it out.

Everything that can be known to be wrong is said here, before the occurrence is stored and 202 is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from kubevnfm_clients.ports import Vims
from kubevnfm_csar import Flavour, UnknownFlavour, UnknownLevel, Vnfd
from kubevnfm_events import Envelope, Message, VimConnection
from kubevnfm_events.infra import UserData, VduTarget
from kubevnfm_events.lcm import InstanceCreated, InstanceDeleted, RemoveRemains
from kubevnfm_kit.clock import Clock, rfc3339
from kubevnfm_kit.errors import Conflict, InvalidInput, NotFound, Unprocessable
from kubevnfm_kit.ids import derived_id, new_id
from kubevnfm_secrets import KeyRing, Secret, hide
from kubevnfm_sol.lcm import (
    CreateVnfRequest,
    InstantiateVnfRequest,
    InstantiationState,
    OperationState,
    OperationType,
    TerminateVnfRequest,
    VnfInstance,
    VnfLcmOpOcc,
)
from kubevnfm_sol.resources import ScaleInfo
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK, VimConnectionInfo, long_vim_type
from kubevnfm_store.port import DocumentStore, RevisionConflict
from kubevnfm_store.query import Compare, Op, Query, Stored
from kubevnfm_worker import Outbox

from kubevnfm_lcm_api.domain import instance as instances
from kubevnfm_lcm_api.domain.cluster_parameters import check_cluster_parameters
from kubevnfm_lcm_api.domain.drafts import (
    InstantiateCnfDraft,
    InstantiateVmDraft,
    TerminateCnfDraft,
    TerminateDraft,
    TerminateVmDraft,
)
from kubevnfm_lcm_api.domain.instance import InstanceRecord
from kubevnfm_lcm_api.domain.occurrence import OccurrenceRecord, VnfFacts
from kubevnfm_lcm_api.domain.plans import planned, write_draft
from kubevnfm_lcm_api.domain.ports import PackageFiles
from kubevnfm_lcm_api.domain.saga import SOURCE
from kubevnfm_lcm_api.engine import Engine
from kubevnfm_lcm_api.packages import Packages, reference

ApiVersion = Literal["v1", "v2"]

CLUSTER_DRIVERS: Final = frozenset({"mgmt-drivers-kubernetes", "kubernetes"})
"""Implementation names that the built-in cluster driver answers to."""
DEFAULT_GRACEFUL_S: Final = 10
"""TerminateVnfRequest without gracefulTerminationTimeout, as Tacker v2."""
DEF_FILES: Final = "lcm-kubernetes-def-files"


class NoVim(Unprocessable):
    """The request names no VIM and there is no default one."""

    code = "no-vim"


class LifeCycle:
    """Creates, instantiates, terminates and deletes VNF instances."""

    def __init__(
        self,
        *,
        store: DocumentStore,
        outbox: Outbox,
        engine: Engine,
        packages: Packages,
        files: PackageFiles,
        vims: Vims,
        ring: KeyRing,
        clock: Clock,
    ) -> None:
        self._store, self._outbox, self._engine = store, outbox, engine
        self._packages, self._files, self._vims = packages, files, vims
        self._ring, self._clock = ring, clock

    # --- instances ----------------------------------------------------------------------------------------------------

    async def create(self, request: CreateVnfRequest) -> Mapping[str, Any]:
        """Make an instance of an enabled package; return its document. Raises PackageUnusable."""
        package = await self._packages.usable(request.vnfd_id)
        vnfd = await self._packages.vnfd(package.id, reference(package).checksum)
        now = rfc3339(self._clock.now())
        initial = vnfd.initial_values
        record = InstanceRecord(
            vnf=VnfInstance(
                id=new_id(),
                vnf_instance_name=request.vnf_instance_name,
                vnf_instance_description=request.vnf_instance_description,
                vnfd_id=vnfd.vnfd_id,
                vnf_provider=vnfd.provider,
                vnf_product_name=vnfd.product_name,
                vnf_software_version=vnfd.software_version,
                vnfd_version=vnfd.descriptor_version,
                vnf_pkg_id=package.id,
                vnf_configurable_properties=hide(initial.configurable_properties),
                extensions=hide(initial.extensions),
                metadata={**hide(initial.metadata), **(request.metadata or {})},
            ),
            created_at=now,
            updated_at=now,
        )
        document = record.document(self._ring)
        created = InstanceCreated(vnf_instance_id=record.vnf.id, **_facts(record).model_dump())
        await self._outbox.insert(instances.COLLECTION, record.vnf.id, document, events=[_news(record.vnf.id, created)])
        # The package may have been disabled or deleted since we looked; its delete counts instances after it has shut
        # the door, so of the two at least one sees the other.
        try:
            await self._packages.usable(request.vnfd_id)
        except Unprocessable:
            await self._store.delete(instances.COLLECTION, record.vnf.id)
            raise
        return document

    async def get(self, instance_id: str) -> Stored:
        """Return the instance. Raises NotFound."""
        stored = await self._store.get(instances.COLLECTION, instance_id)
        if stored is None:
            raise NotFound(f"VNF instance {instance_id} does not exist")
        return stored

    async def delete(self, instance_id: str) -> None:
        """Delete a NOT_INSTANTIATED instance; what a failed instantiate left is then removed in the background.

        Raises: NotFound; Conflict while INSTANTIATED or an operation runs.
        """
        stored = await self.get(instance_id)
        record = InstanceRecord.from_document(stored.body)
        await self._must_be(record, InstantiationState.NOT_INSTANTIATED)
        deleted = InstanceDeleted(vnf_instance_id=instance_id, **_facts(record).model_dump())
        messages = [_news(instance_id, deleted)]
        remains_of = record.internals.remains_of
        if remains_of is not None:
            messages.append(
                Envelope(
                    data=RemoveRemains(vnf_instance_id=instance_id, vnf_lcm_op_occ_id=remains_of),
                    source=SOURCE,
                    id=derived_id("remove-remains", instance_id),
                    subject=instance_id,
                )
            )
        try:
            await self._outbox.delete(instances.COLLECTION, instance_id, if_revision=stored.revision, events=messages)
        except RevisionConflict as error:
            raise Conflict("the VNF instance was changed by another request meanwhile: try again") from error

    # --- operations ---------------------------------------------------------------------------------------------------

    async def instantiate(
        self, instance_id: str, request: InstantiateVnfRequest, original: Mapping[str, Any], version: ApiVersion
    ) -> str:
        """Accept an instantiate; return the occurrence's id. ``original`` is the body as the API version has it.

        Raises: NotFound, Conflict, InvalidInput, Unprocessable; nothing was created then.
        """
        stored = await self.get(instance_id)
        record = InstanceRecord.from_document(stored.body)
        await self._must_be(record, InstantiationState.NOT_INSTANTIATED)
        package = await self._packages.get(record.vnf.vnf_pkg_id)
        vnfd = await self._packages.vnfd(package.id, reference(package).checksum)
        flavour = _flavour(vnfd, request)
        connections = {**record.vnf.vim_connection_info, **request.vim_connection_info}
        vim_key, connections = await self._choose_vim(connections, request.additional_params)
        connection = connections[vim_key]
        common: dict[str, Any] = {
            "vnf_instance_id": instance_id,
            "package": reference(package),
            "vim_key": vim_key,
            "vim": VimConnection(**{name: getattr(connection, name) for name in VimConnectionInfo.model_fields}),
            "vim_connections": connections,
            "flavour_id": flavour.flavour_id,
            "instantiation_level_id": request.instantiation_level_id,
            "api_version": version,
            "parameters": request.additional_params,
            "extensions": request.extensions,
            "vnf_configurable_properties": request.vnf_configurable_properties,
            "localization_language": request.localization_language,
            "scale_status": _scale_status(flavour, request.instantiation_level_id),
            "max_scale_levels": tuple(
                ScaleInfo(aspect_id=name, scale_level=aspect.max_scale_level)
                for name, aspect in flavour.aspects.items()
            ),
            "external_cps": {name: name for name, cp in flavour.cps.items() if cp.is_external and cp.vdu_id},
            "ext_virtual_links": tuple(
                link.model_dump(mode="json", by_alias=True, exclude_none=True) for link in request.ext_virtual_links
            ),
            "remains_of": record.internals.remains_of,
        }
        draft: InstantiateVmDraft | InstantiateCnfDraft
        if connection.vim_type == KUBERNETES:
            draft = await self._cnf_draft(common, flavour, request)
        else:
            draft = await self._vm_draft(common, record, flavour, request, original)
        return await self._accept(stored, record, OperationType.INSTANTIATE, hide(original), draft, version)

    async def terminate(
        self, instance_id: str, request: TerminateVnfRequest, original: Mapping[str, Any], version: ApiVersion
    ) -> str:
        """Accept a terminate; return the occurrence's id.

        Raises: NotFound; Conflict while NOT_INSTANTIATED, busy, or (GRACEFUL) while others use its cluster.
        """
        stored = await self.get(instance_id)
        record = InstanceRecord.from_document(stored.body)
        await self._must_be(record, InstantiationState.INSTANTIATED)
        internals = record.internals
        forceful = request.termination_type == "FORCEFUL"
        if internals.cluster_vim_id is not None and not forceful:
            users = [user for user in await self.users(internals.cluster_vim_id) if user != instance_id]
            if users:
                raise Conflict(
                    f"the VIM of this cluster is used by VNF instance {', '.join(users[:3])}: "
                    "terminate that first, or terminate this one FORCEFUL"
                )
        assert internals.vim_key is not None
        connection = record.vnf.vim_connection_info[internals.vim_key]
        timeout = request.graceful_termination_timeout
        waits = DEFAULT_GRACEFUL_S if timeout is None else timeout
        common: dict[str, Any] = {
            "vnf_instance_id": instance_id,
            "vnfd_id": record.vnf.vnfd_id,
            "vim_key": internals.vim_key,
            "vim": VimConnection(**{name: getattr(connection, name) for name in VimConnectionInfo.model_fields}),
            "is_forceful": forceful,
            "graceful_wait_s": 0.0 if forceful else float(waits),
        }
        draft: TerminateDraft
        if internals.kind == "cnf":
            draft = TerminateCnfDraft(**common, release=internals.release)
        else:
            package = await self._packages.get(record.vnf.vnf_pkg_id)
            draft = TerminateVmDraft(
                **common,
                stack_name=internals.stack_name or stack_name(instance_id),
                package=reference(package),
                resources=internals.resources,
                phases=internals.phases,
                parameters={**internals.parameters, **request.additional_params},
                cluster_vim_key=internals.cluster_vim_key,
            )
        return await self._accept(stored, record, OperationType.TERMINATE, hide(original), draft, version)

    async def users(self, vim_id: str) -> list[str]:
        """Return the ids of the instances that are instantiated on the VIM, or are being so; see `ports.VimUsers`."""
        is_user = Compare("internal/vimIds", Op.EQ, [vim_id])
        return [stored.id for stored in await self._store.find(instances.COLLECTION, Query(is_user))]

    async def _accept(
        self,
        stored: Stored,
        record: InstanceRecord,
        operation: OperationType,
        parameters: Mapping[str, Any],
        draft: InstantiateVmDraft | InstantiateCnfDraft | TerminateDraft,
        version: ApiVersion,
    ) -> str:
        now = rfc3339(self._clock.now())
        occurrence = OccurrenceRecord(
            occ=VnfLcmOpOcc(
                id=new_id(),
                operation_state=OperationState.STARTING,
                state_entered_time=now,
                start_time=now,
                vnf_instance_id=record.vnf.id,
                operation=operation,
                operation_params=dict(parameters),
            ),
            api_version=version,
            plan=draft.plan,
            steps=planned(draft),
            draft=write_draft(draft, self._ring),
            facts=_facts(record),
        )
        claims: dict[str, Any] = {}
        if isinstance(draft, InstantiateVmDraft | InstantiateCnfDraft):
            claims["internal/vimIds"] = [draft.vim.vim_id] if draft.vim.vim_id is not None else []
        await self._engine.accept(stored, occurrence, claims)
        return occurrence.occ.id

    async def _must_be(self, record: InstanceRecord, state: InstantiationState) -> None:
        busy = await self._engine.why_busy(record)
        if busy is not None:
            raise busy
        if record.vnf.instantiation_state is not state:
            raise Conflict(f"the VNF instance is {record.vnf.instantiation_state}; {state} expected")

    # --- meaning ------------------------------------------------------------------------------------------------------

    async def _choose_vim(
        self, connections: Mapping[str, VimConnectionInfo], parameters: Mapping[str, Any]
    ) -> tuple[str, dict[str, VimConnectionInfo]]:
        """Return the entry that the resources go to, by type and never by place (sequences.md 4.3), and all entries."""
        typed = {
            key: value.model_copy(update={"vim_type": long_vim_type(value.vim_type)})
            for key, value in connections.items()
        }
        for key, value in typed.items():
            if value.vim_type not in {OPENSTACK, KUBERNETES}:
                raise Unprocessable(f"vimConnectionInfo/{key}/vimType", f"{OPENSTACK} or {KUBERNETES} expected")
        wanted = KUBERNETES if DEF_FILES in parameters else OPENSTACK
        found = next((key for key, value in typed.items() if value.vim_type == wanted), next(iter(typed), None))
        if found is None:
            default = await self._vims.default()
            if default is None:
                raise NoVim("vimConnectionInfo", "no entry was given and no default VIM is registered")
            found = str(default["id"])
            typed[found] = VimConnectionInfo(vim_id=found, vim_type=long_vim_type(str(default["type"])))
        key, chosen = found, typed[found]
        if not chosen.access_info:
            if chosen.vim_id is None:
                raise Unprocessable(f"vimConnectionInfo/{key}", "vimId or accessInfo expected")
            try:
                registered = await self._vims.get(chosen.vim_id)
            except NotFound as error:
                raise Unprocessable(
                    f"vimConnectionInfo/{key}/vimId", f"no VIM {chosen.vim_id} is registered"
                ) from error
            if long_vim_type(str(registered["type"])) != chosen.vim_type:
                raise Unprocessable(f"vimConnectionInfo/{key}/vimType", f"the VIM is of type {registered['type']}")
        elif not chosen.interface_info.get("endpoint"):
            raise InvalidInput(f"vimConnectionInfo/{key}/interfaceInfo/endpoint", "required beside accessInfo")
        return key, typed

    async def _vm_draft(
        self,
        common: Mapping[str, Any],
        record: InstanceRecord,
        flavour: Flavour,
        request: InstantiateVnfRequest,
        original: Mapping[str, Any],
    ) -> InstantiateVmDraft:
        package = common["package"]
        parameters = request.additional_params
        files = await self._packages.file_names(package.package_id)
        base_hot = await self._files.base_hot(package.package_id, flavour.flavour_id)
        if base_hot is None:
            raise Unprocessable("flavourId", f"the package has no Base HOT for flavour {flavour.flavour_id}")
        phases = {phase: driver.name for phase, driver in flavour.phases.items()}
        for phase, driver in phases.items():
            if driver not in CLUSTER_DRIVERS:
                raise Unprocessable(
                    "vnfdId",
                    f"the VNFD maps {phase} to management driver {driver}; "
                    f"this VNFM knows {', '.join(sorted(CLUSTER_DRIVERS))}",
                )
        cluster_vim_name: str | None = None
        if "instantiate_end" in phases:
            cluster = check_cluster_parameters(
                parameters,
                flavour=flavour,
                base_hot=base_hot,
                file_names=files,
                api_version=common["api_version"],
                instantiation_level_id=request.instantiation_level_id,
            )
            cluster_vim_name = cluster.vim_name or f"kubernetes_vim_{record.vnf.id}"
            await self._check_vim_name(cluster_vim_name, record.vnf.id)
        return InstantiateVmDraft(
            **common,
            stack_name=stack_name(record.vnf.id),
            request=hide(original),
            instance=record.vnf.model_dump(by_alias=True, exclude_none=True),
            user_data=_user_data(parameters, files),
            phases=phases,
            cluster_vim_name=cluster_vim_name,
            max_nodes=sum(flavour.max_count(vdu_id) for vdu_id in flavour.vdus) or None,
        )

    async def _check_vim_name(self, name: str, instance_id: str) -> None:
        for vim in await self._vims.list({"name": [name]}):
            if vim.get("extra", {}).get("vnf_instance_id") != instance_id:
                raise Conflict(
                    f"additionalParams/k8s_cluster_installation_param/vim_name: a VIM named {name} is registered already"
                )

    async def _cnf_draft(
        self, common: Mapping[str, Any], flavour: Flavour, request: InstantiateVnfRequest
    ) -> InstantiateCnfDraft:
        parameters = request.additional_params
        files = await self._packages.file_names(common["package"].package_id)
        def_files = _def_files(parameters, files)
        namespace = parameters.get("namespace")
        if namespace is not None and not isinstance(namespace, str):
            raise InvalidInput("additionalParams/namespace", "a text expected")
        wait = parameters.get("wait_timeout")
        if wait is not None and (not isinstance(wait, int | float) or isinstance(wait, bool) or wait <= 0):
            raise InvalidInput("additionalParams/wait_timeout", "seconds above 0 expected")
        counts = flavour.initial_counts(request.instantiation_level_id)
        return InstantiateCnfDraft(
            **common,
            def_files=def_files,
            namespace=namespace,
            multi_namespace=_flag(parameters, "multi_namespace"),
            adopt=_flag(parameters, "adopt"),
            vdus=tuple(
                VduTarget(vdu_id=vdu_id, name=vdu.name or vdu_id, replicas=_replicas(flavour, vdu_id, counts))
                for vdu_id, vdu in flavour.vdus.items()
            ),
            wait_timeout_s=float(wait) if wait is not None else None,
        )


def stack_name(instance_id: str) -> str:
    """Return the name of the instance's stack: as Tacker v2 and both its guides print it."""
    return f"vnf-{instance_id}"


def _flavour(vnfd: Vnfd, request: InstantiateVnfRequest) -> Flavour:
    try:
        flavour = vnfd.flavour(request.flavour_id)
    except UnknownFlavour as error:
        raise InvalidInput("flavourId", str(error)) from error
    try:
        flavour.level(request.instantiation_level_id)
    except UnknownLevel as error:
        raise InvalidInput("instantiationLevelId", str(error)) from error
    return flavour


def _scale_status(flavour: Flavour, level_id: str | None) -> tuple[ScaleInfo, ...]:
    return tuple(
        ScaleInfo(aspect_id=aspect_id, scale_level=level) for aspect_id, level in flavour.scale_levels(level_id).items()
    )


def _replicas(flavour: Flavour, vdu_id: str, counts: Mapping[str, int]) -> int | None:
    """Return the count that the VNFD gives a workload; None where it says nothing and the manifest decides."""
    is_said = vdu_id in flavour.initial_deltas or any(vdu_id in level.counts for level in flavour.levels.values())
    return counts.get(vdu_id) if is_said else None


def _user_data(parameters: Mapping[str, Any], files: frozenset[str]) -> UserData | None:
    """Return the user data class that the request names (sequences.md 2.1). Raises InvalidInput, Unprocessable."""
    path, class_name = parameters.get("lcm-operation-user-data"), parameters.get("lcm-operation-user-data-class")
    if path is None and class_name is None:
        return None
    for name, value in (("lcm-operation-user-data", path), ("lcm-operation-user-data-class", class_name)):
        if not isinstance(value, str) or not value:
            raise InvalidInput(
                f"additionalParams/{name}", "both of lcm-operation-user-data and -class, or none, expected"
            )
    normal = str(path).removeprefix("./")
    if ".." in normal.split("/") or normal.startswith("/") or not normal.endswith(".py"):
        raise InvalidInput(
            "additionalParams/lcm-operation-user-data", "a path inside the package, ending in .py, expected"
        )
    if normal not in files:
        raise Unprocessable("additionalParams/lcm-operation-user-data", f"the package has no file {normal}")
    if not str(class_name).isidentifier():
        raise InvalidInput("additionalParams/lcm-operation-user-data-class", "a Python class name expected")
    return UserData(path=normal, class_name=str(class_name))


def _def_files(parameters: Mapping[str, Any], files: frozenset[str]) -> tuple[str, ...]:
    """Return the manifests of a CNF (capi.md CR-004, CR-005). Raises InvalidInput."""
    listed = parameters.get(DEF_FILES)
    place = f"additionalParams/{DEF_FILES}"
    if not isinstance(listed, list) or not listed:
        raise InvalidInput(place, "a list of paths or URLs, at least one, expected for a CNF")
    for index, name in enumerate(listed):
        if isinstance(name, Secret) or not isinstance(name, str):
            raise InvalidInput(f"{place}[{index}]", "a path of the package or an http(s) URL expected")
        if not name.startswith(("http://", "https://")) and name.removeprefix("./") not in files:
            raise InvalidInput(f"{place}[{index}]", f"the package has no file {name}")
    return tuple(name.removeprefix("./") for name in listed)


def _flag(parameters: Mapping[str, Any], name: str) -> bool:
    value = parameters.get(name, False)
    if not isinstance(value, bool):
        raise InvalidInput(f"additionalParams/{name}", "true or false expected")
    return value


def _facts(record: InstanceRecord) -> VnfFacts:
    vnf = record.vnf
    return VnfFacts(
        vnf_instance_name=vnf.vnf_instance_name or "",
        vnfd_id=vnf.vnfd_id,
        vnf_provider=vnf.vnf_provider,
        vnf_product_name=vnf.vnf_product_name,
        vnf_software_version=vnf.vnf_software_version,
        vnfd_version=vnf.vnfd_version,
    )


def _news(instance_id: str, event: InstanceCreated | InstanceDeleted) -> Envelope[Message]:
    return Envelope(data=event, source=SOURCE, subject=instance_id)
