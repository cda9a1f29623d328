"""The logins to an OpenStack that vim-registry gives, kept in memory: a twin for tests of its callers."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubevnfm_clients.cloud_identity import CloudIdentity, IdentityKind
from kubevnfm_kit.errors import NotFound, VnfmError
from kubevnfm_secrets import Secret

OPENSTACK = "the-openstack"


@dataclass
class GivenIdentities:
    """`kubevnfm_clients.ports.CloudIdentities`, with the application credentials of one VIM."""

    secrets: dict[str, str] = field(default_factory=dict)
    """Secret by id of the credential, of those that Keystone has."""
    owners: dict[str, str] = field(default_factory=dict)
    """Id of the credential by instance."""
    has_password: bool = False
    """Whether Keystone makes no application credential."""
    problem: VnfmError | None = None
    """The error that each call raises, if any."""
    made: int = 0

    async def give(self, vim_id: str, vnf_instance_id: str, *, present: str | None) -> CloudIdentity:
        """See the port."""
        self._check(vim_id)
        if self.has_password:
            auth: dict[str, object] = {"username": "nfv", "password": Secret("the-password")}
            return self._identity("password", auth, None, "no application credential")
        known = self.owners.get(vnf_instance_id)
        if present is not None and present == known:
            return self._identity("kept", {"application_credential_id": present}, present)
        if known is not None:
            del self.secrets[known]
        self.made += 1
        made = f"credential-{self.made}"
        self.owners[vnf_instance_id], self.secrets[made] = made, f"secret-{self.made}"
        auth = {"application_credential_id": made, "application_credential_secret": Secret(self.secrets[made])}
        return self._identity("created", auth, made)

    async def take_back(self, vim_id: str, vnf_instance_id: str) -> int:
        """See the port."""
        self._check(vim_id)
        known = self.owners.pop(vnf_instance_id, None)
        if known is None:
            return 0
        del self.secrets[known]
        return 1

    def _check(self, vim_id: str) -> None:
        if self.problem is not None:
            raise self.problem
        if vim_id != OPENSTACK:
            raise NotFound(f"no VIM {vim_id}")

    @staticmethod
    def _identity(kind: IdentityKind, auth: dict[str, object], id: str | None, note: str = "") -> CloudIdentity:
        cloud = {"auth": {"auth_url": "https://cloud.example:5000/v3", **auth}, "region_name": "RegionOne"}
        return CloudIdentity(kind=kind, cloud=cloud, cacert="the CA", credential_id=id, note=note)
