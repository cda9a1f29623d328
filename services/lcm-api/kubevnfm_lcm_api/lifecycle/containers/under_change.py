"""The CNF that an operation changes: its instance, package, flavour and objects."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Self

from kubevnfm_events import VimConnection
from kubevnfm_events.objects import ChartOrder, VduTarget
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import OperationType

from kubevnfm_lcm_api.lifecycle.containers.changing import ChangeCnfDraft
from kubevnfm_lcm_api.lifecycle.containers.instantiating import declares_count, objects_order, vdu_targets, wait_timeout
from kubevnfm_lcm_api.lifecycle.containers.ordering import order_artifact_in
from kubevnfm_lcm_api.lifecycle.containers.variables import stored_variables
from kubevnfm_lcm_api.lifecycle.core.instance import Release
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, UnderChange
from kubevnfm_lcm_api.lifecycle.core.request_parameters import DEF_FILES
from kubevnfm_lcm_api.lifecycle.core.scale_levels import declared_counts
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_fields
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of


@dataclass(frozen=True)
class CnfUnderChange(UnderChange):
    """A CNF that is INSTANTIATED and free."""

    vim_key: str
    """The entry of vimConnectionInfo for the CNF's cluster."""
    release: Release

    @classmethod
    def of_containers(cls, vnf: UnderChange) -> Self:
        """Return the CNF with its objects."""
        deployment = vnf.record.release
        assert deployment is not None
        assert deployment.release is not None
        return cls(**vars(vnf), vim_key=deployment.vim_key, release=deployment.release)

    @property
    def def_files(self) -> tuple[str, ...]:
        """The files that describe the CNF, in order."""
        return tuple((self.info.metadata or {}).get(DEF_FILES) or ())

    def check_files(self, files: frozenset[str], replacing: Collection[str]) -> None:
        """Raise Unprocessable if ``files``, those of another package, lack some that the CNF was made from.

        Files that are to be replaced need not be there; infra-k8s, which reads them, finds out which these are.
        """
        missing = [name for name in self.def_files if "://" not in name and name not in files]
        if len(missing) > len(replacing):
            raise Unprocessable("vnfdId", f"the package lacks {', '.join(missing)}, which the CNF was made from")
        if self.order_artifact is not None and self.order_artifact not in files:
            raise Unprocessable("vnfdId", f"the package lacks {self.order_artifact}, the order of the CNF's artifacts")

    @property
    def order_artifact(self) -> str | None:
        """The file of the package that orders the artifacts; None if requests have listed the manifests."""
        return order_artifact_in(self.record.internals.parameters)

    def counts_at(self, levels: Mapping[str, int], level_id: str | None = None) -> dict[str, int]:
        """Return the pods by VDU at scale levels; ``level_id``: None for the instantiation level that the CNF has.

        A VDU whose number the VNFD leaves to the manifest has the pods that the last operation left and what the levels add to them.
        """
        began = self.record.internals.instantiation_level_id if level_id is None else level_id
        declared, present = declared_counts(self.flavour, began, levels), self.release.counts
        now = self.scale_levels
        return {
            vdu_id: count
            if declares_count(self.flavour, vdu_id)
            else max(
                0,
                present.get(vdu_id, 0)
                + sum(
                    aspect.delta(vdu_id, level=levels.get(name, 0)) - aspect.delta(vdu_id, level=now.get(name, 0))
                    for name, aspect in self.flavour.aspects.items()
                ),
            )
            for vdu_id, count in declared.items()
        }

    @property
    def targets(self) -> tuple[VduTarget, ...]:
        """The workload of each VDU, with its replicas at the present scale levels."""
        return vdu_targets(self.flavour, self.record.internals.parameters, self.counts_at(self.scale_levels))

    @property
    def order(self) -> ChartOrder:
        """The objects that exist, with the replicas of the present scale levels. Raises Unprocessable."""
        parameters = self.record.internals.parameters
        order = objects_order(
            parameters,
            self.flavour,
            self.counts_at(self.scale_levels),
            record=self.record,
            package=self.package,
            vim=self._vim,
            def_files=self.def_files,
            namespace=self.release.namespace,
            variables=stored_variables(parameters),
        )
        internals = self.record.internals
        held = {"networks": internals.networks, "volumes": internals.volumes, "outputs": internals.outputs}
        return order.model_copy(update=held)

    @property
    def _vim(self) -> VimConnection:
        connection = self.record.vnf.vim_connection_info.get(self.vim_key)
        if connection is None:
            raise Unprocessable("vimConnectionInfo", f"no entry {self.vim_key}, which is the CNF's cluster")
        return VimConnection(**vars(connection))

    def change(
        self,
        asked: Asked[SolType],
        operation: OperationType,
        more_scripts: Mapping[str, str] = {},
    ) -> ChangeCnfDraft:
        """Return what the drafts of all changes of a CNF have in common. Raises InvalidInput, Unprocessable.

        ``more_scripts``: those of phases of other operations, by phase.
        """
        scripts = {**scripts_of(self.flavour, operation), **more_scripts}
        wait = wait_timeout(getattr(asked.request, "additional_params", {}))
        return ChangeCnfDraft(
            **vars(self.order),
            vnf_instance_id=self.record.vnf.id,
            vim_key=self.vim_key,
            flavour_id=self.flavour.flavour_id,
            before=self.release,
            wait_timeout_s=self.record.internals.parameters.get("wait_timeout") if wait is None else wait,
            **script_fields(scripts, asked, self.record.vnf),
        )
