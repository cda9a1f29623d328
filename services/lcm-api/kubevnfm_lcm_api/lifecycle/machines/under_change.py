"""The VNF of machines that an operation changes: its stack, and the fields that all drafts of changes have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from kubevnfm_csar.hot import BaseHot
from kubevnfm_csar.vnfd.model import Flavour
from kubevnfm_events import ApiVersion, VimConnection
from kubevnfm_events.stacks import LeftPackage, StackResources, UserData
from kubevnfm_secrets import hide
from kubevnfm_sol.base import SolType
from kubevnfm_sol.lcm import OperationType
from kubevnfm_sol.vim import VimConnectionInfo

from kubevnfm_lcm_api.lifecycle.core.instance import StackDeployment
from kubevnfm_lcm_api.lifecycle.core.kind import Asked, UnderChange
from kubevnfm_lcm_api.lifecycle.core.scale_levels import declared_counts
from kubevnfm_lcm_api.lifecycle.core.vim_choice import VimEntries
from kubevnfm_lcm_api.lifecycle.machines.asked_links import LinkRules
from kubevnfm_lcm_api.lifecycle.machines.changing import ChangeVmDraft
from kubevnfm_lcm_api.lifecycle.machines.drivers import RoleName, role_name
from kubevnfm_lcm_api.lifecycle.machines.inventory import index_of, machines_by_vdu
from kubevnfm_lcm_api.lifecycle.machines.package_fit import named_user_data
from kubevnfm_lcm_api.lifecycle.scripts.asked import script_request
from kubevnfm_lcm_api.lifecycle.scripts.drivers import scripts_of


@dataclass(frozen=True)
class VnfUnderChange(UnderChange):
    """A VNF of machines that is INSTANTIATED and free."""

    stack: StackDeployment
    resources: StackResources

    @classmethod
    def of_machines(cls, vnf: UnderChange) -> Self:
        """Return the VNF with its stack."""
        stack = vnf.record.stack
        assert stack is not None
        assert stack.resources is not None
        return cls(**vars(vnf), stack=stack, resources=stack.resources)

    @property
    def role_name(self) -> RoleName | None:
        """The role of the machines; scripts of the package make clusters too."""
        internals = self.record.internals
        return role_name(internals.phases) or ("cluster" if internals.cluster_vim_key is not None else None)

    @property
    def vim_key(self) -> str:
        """The entry of vimConnectionInfo for the stack's VIM."""
        return self.stack.vim_key

    @property
    def counts(self) -> dict[str, int]:
        """The number of machines of every VDU, 0 included."""
        present = machines_by_vdu(self.resources)
        return {vdu_id: present[vdu_id] for vdu_id in self.flavour.vdus}

    @property
    def declared_counts(self) -> dict[str, int]:
        """The number of machines of every VDU that its descriptor gives for the present scale levels."""
        return declared_counts(self.flavour, self.record.internals.instantiation_level_id, self.scale_levels)

    @property
    def counts_to_make(self) -> dict[str, int]:
        """The same for a stack with the template of the instance's package: that may have VDUs that the present one lacks."""
        if self.stack.left_package is None:
            return self.counts
        return {vdu_id: count or self.declared_counts[vdu_id] for vdu_id, count in self.counts.items()}

    @property
    def is_numbered(self) -> bool:
        """Whether a class of user data has made a resource for each machine, with its own parameters."""
        return self.record.internals.user_data is not None and any(
            index_of(server) is not None for server in self.resources.servers
        )

    def link_rules(self, flavour: Flavour, hot: BaseHot | None, *, has_user_data: bool) -> LinkRules:
        """Return what decides about the links of a change to the flavour, which has this Base HOT."""
        vim_id = self.record.vnf.vim_connection_info[self.vim_key].vim_id
        return LinkRules(
            flavour,
            hot,
            vim_ids={self.vim_key, *([vim_id] if vim_id is not None else [])},
            has_user_data=has_user_data,
            counts=self.counts,
            before=self.info,
            links_before=self.record.internals.connections.get("extVirtualLinks") or (),
            is_numbered=self.is_numbered,
        )

    def vim(self, connections: Mapping[str, VimConnectionInfo]) -> VimConnection:
        """Return the access data of the VNF's VIM; entries of ``connections`` replace those of the instance."""
        connection = {**self.record.vnf.vim_connection_info, **connections}[self.vim_key]
        return VimConnection(**vars(connection))

    async def connections(
        self, vim_entries: VimEntries, given: Mapping[str, VimConnectionInfo], version: ApiVersion
    ) -> dict[str, VimConnectionInfo]:
        """Return the vimConnectionInfo of a request about the VNF. Raises InvalidInput, Unprocessable."""
        present = self.record.vnf.vim_connection_info[self.vim_key]
        return await vim_entries.changed(given, self.vim_key, present, version)

    @property
    def _left_package(self) -> LeftPackage | None:
        """The package whose template the stack has, if it is not that of the instance."""
        package, internals = self.stack.left_package, self.record.internals
        if package is None:
            return None
        links = {name: links for name, links in internals.connections.items() if links}
        return LeftPackage(package=package, instantiate_request={**internals.request, **links})

    def change(
        self,
        asked: Asked[SolType],
        operation: OperationType,
        parameters: Mapping[str, Any],
        files: frozenset[str],
        connections: Mapping[str, VimConnectionInfo] = {},
    ) -> ChangeVmDraft:
        """Return what the drafts of all changes of a stack have in common. Raises InvalidInput, Unprocessable.

        ``parameters``: additionalParams; ``files``: the paths in the package; ``connections``: the entries of vimConnectionInfo that the request brings.
        """
        internals = self.record.internals
        instance = self.record.vnf.model_dump(by_alias=True, exclude_none=True)
        named: UserData | None = named_user_data(parameters, files)
        scripts = scripts_of(self.flavour, operation)
        return ChangeVmDraft(
            vnf_instance_id=self.record.vnf.id,
            scripts=scripts,
            script_request=script_request(asked) if scripts else {},
            package=self.package,
            vim_key=self.vim_key,
            vim=self.vim(connections),
            vim_connections={**self.record.vnf.vim_connection_info, **connections} if connections else {},
            stack_name=self.stack.stack_name,
            flavour_id=self.flavour.flavour_id,
            instantiation_level_id=internals.instantiation_level_id,
            api_version=asked.version,
            request=dict(hide(asked.original)),
            instance=instance,
            # As Tacker: a request of v2 names its own class, and one of v1 has that of the instantiation.
            user_data=named or (internals.user_data if asked.version == "v1" else None),
            counts=self.counts,
            connections=internals.connections,
            left_package=self._left_package,
            connections_before=internals.connections,
            external_cps=internals.external_cps,
            scale_status=self.info.scale_status or (),
            max_scale_levels=self.info.max_scale_levels or (),
            before=self.resources,
        )
