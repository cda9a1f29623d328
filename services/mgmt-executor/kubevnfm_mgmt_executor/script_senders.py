"""Prepares scripts of packages that send a workload cluster's credentials: access, connections, and the facts of the call-back.

``capi.md`` CR-009 and CR-077; docs/security.md says what such a script may reach, and why.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import structlog
from kubevnfm_clients import callback
from kubevnfm_clients.cluster_access import PROXY_URL
from kubevnfm_clients.ports import VimDirectory
from kubevnfm_events import VimConnection
from kubevnfm_events.credentials import CredentialsSent, SendCredentials, WithdrawCredentials
from kubevnfm_events.mgmt import CredentialsSender
from kubevnfm_kit.cluster_trust import cluster_trust
from kubevnfm_kit.errors import VnfmError
from kubevnfm_kit.json_types import JsonMapping
from kubevnfm_secrets import KeyRing, Secret, map_secrets, revealed

from kubevnfm_mgmt_executor.domain.capi import request
from kubevnfm_mgmt_executor.domain.capi.clusters import host_and_port, secret_path
from kubevnfm_mgmt_executor.domain.capi.collecting import Collector
from kubevnfm_mgmt_executor.domain.capi.delivery import Progress, Sender
from kubevnfm_mgmt_executor.domain.capi.errors import ClusterMissing, NotThereYet
from kubevnfm_mgmt_executor.domain.capi.journaled import collected
from kubevnfm_mgmt_executor.domain.capi.reader_accounts import make_reader, remove_reader
from kubevnfm_mgmt_executor.domain.capi.request import Collected
from kubevnfm_mgmt_executor.domain.recorder import Recorder
from kubevnfm_mgmt_executor.domain.scripts import Grants, Opening

log = structlog.get_logger()

SenderAccess = Literal["token", "vim"]
AddressesOf = Callable[[str], Awaitable[tuple[str, ...]]]
"""The addresses of a name. Raises OSError."""
ServesAt = Callable[[VimConnection, str], Awaitable[bool]]
"""Whether an address is that cluster."""
_RESERVE_S: Final = 60.0
"""Time that a token is valid after the time of the script: clocks differ."""
_TRUSTED: Final = "SSL_CERT_FILE"
"""The variable by which OpenSSL finds the CAs that it trusts by default."""
_FILE: Final = "KUBEVNFM_CALLBACK_FILE"
"""The variable that names the file with what a script needs for its call-back (CR-077, docs/credentials-receiver.md)."""
_FORBIDDEN: Final = 403


@dataclass(frozen=True)
class TrustedCas:
    """CAs as PEM."""

    machine: str
    """Those of this machine."""
    receivers: str
    """Those that the certificates of receivers must come from."""

    @property
    def all(self) -> str:
        """Both, each once."""
        return "\n".join(dict.fromkeys((self.machine, self.receivers)))


@dataclass(frozen=True)
class Found:
    """The facts that are known before the script starts."""

    url: str
    """The receiver's."""
    vim: VimConnection
    """The management cluster, with its access data."""
    collected: Collected | None
    """The workload cluster; None: DELETED, and it does not answer."""
    cluster_uid: str | None
    """None: the Cluster object no longer exists, or DELETED is forced and the management cluster does not answer."""
    body: JsonMapping
    """The whole body of DELETED; of CREATED and ROTATED all but ``credentials.kubeconfig``."""
    sent: CredentialsSent | None = None
    """The facts of the cluster whose credentials the script sends; None: DELETED."""


@dataclass(frozen=True)
class Prepared:
    """The access, connections and files of a script, beyond those of other scripts."""

    vim_key: str
    """The management cluster's entry of vimConnectionInfo."""
    entry: Mapping[str, Any] = field(repr=False)
    """Attributes of it, in clear."""
    opening: Opening
    secrets: frozenset[str] = field(repr=False)


@dataclass(frozen=True)
class _Destination:
    """An address and a port to which the script may connect."""

    host: str
    address: str
    port: int


@dataclass(frozen=True)
class ScriptSenders:
    """Prepares scripts that send credentials."""

    collector: Collector
    sender: Sender
    """Has the master keys; a script gets the key of its instance alone."""
    vims: VimDirectory
    key_ring: KeyRing
    receiver_url: str | None
    allowed_hosts: Collection[str]
    access: SenderAccess
    """``token``: a token for the Secret alone; ``vim``: the access data of the VIM."""
    addresses_of: AddressesOf
    serves_at: ServesAt
    trusted_cas: Callable[[], Awaitable[TrustedCas]]
    grants: Grants
    """Judges the addresses of workload clusters, and of a management cluster that a VNF has built."""

    async def find(self, sender: CredentialsSender, recorder: Recorder, operation_id: str) -> Found:
        """Return what is known of the clusters and the receiver; CREATED and ROTATED wait until the cluster answers.

        Raises: CallbackNotConfigured, CallbackUrlRefused; as ``Collector.collect``.
        """
        command = _command(sender)
        self.sender.check()
        url = request.receiver_url(
            command.callback_url,
            configured=self.receiver_url,
            allowed_hosts=self.allowed_hosts,
            vnf_instance_id=command.vnf_instance_id,
        )
        if isinstance(command, WithdrawCredentials):
            return await self._find_what_is_left(command, url, operation_id)
        vim = await self.vims.connection(command.vim)

        async def collect(progress: Progress) -> Collected:
            return await self.collector.collect_admin(command.cluster, vim, progress)

        found = await collected(recorder, command.cluster, operation_id, collect)
        facts = found.facts
        sent = CredentialsSent(
            cluster_uid=facts.uid,
            endpoint=facts.endpoint,
            kubernetes_version=found.kubernetes_version,
            contract=facts.contract,
            infrastructure_provider=facts.infrastructure_provider,
        )
        body = request.created_body(command, found, operation_id=operation_id)
        return Found(url, vim, found, facts.uid, body, sent)

    async def _find_what_is_left(self, command: WithdrawCredentials, url: str, operation_id: str) -> Found:
        """As `find`; a workload cluster that does not answer is not waited for, because it will be deleted."""
        uid, present, vim, obj = command.cluster_uid, None, command.vim, None
        try:
            vim = await self.vims.connection(command.vim)
            obj = await self.collector.find_cluster(vim, command.cluster)
        except VnfmError:
            if not command.force:
                raise
        if obj is not None:
            uid = str(obj["metadata"]["uid"])
            with suppress(VnfmError):
                present = await replace(self.collector, limit_s=0.0).collect_admin(command.cluster, vim, _unheard)
        if uid is None:
            raise ClusterMissing(
                f"the management cluster has no Cluster {command.cluster.name}, and its uid is unknown"
            )
        # The sent credentials are erased, also if others have put another Cluster in the place of theirs.
        body = request.deleted_body(command, operation_id=operation_id, uid=command.cluster_uid or uid)
        return Found(url, vim, present, None if obj is None else uid, body)

    @asynccontextmanager
    async def prepared(
        self, sender: CredentialsSender, found: Found, operation_id: str, *, progress: Progress, life_s: float
    ) -> AsyncIterator[Prepared]:
        """Yield what the script gets; leaving takes the token back. ``life_s``: the time of the script.

        Raises: ReaderRefused, WaitedTooLong; as ``ClusterApi``.
        """
        command, cas = _command(sender), await self.trusted_cas()
        number = len(self.sender.master_keys)
        key = callback.instance_key(self.sender.master_keys[number - 1], command.vnf_instance_id)
        file = {
            "url": found.url,
            "keyId": callback.key_id(command.vnf_instance_id, number),
            "key": key.hex(),
            "tls": {"ca": cas.receivers} if urlsplit(found.url).scheme == "https" and cas.receivers else None,
            "vnfInstanceId": command.vnf_instance_id,
            "vnfLcmOpOccId": operation_id,
            "body": found.body,
        }
        destinations = await self._destinations(found, progress)
        opening = Opening(
            reach=tuple(dict.fromkeys((one.address, one.port) for one in destinations)),
            names=_names(destinations),
            private_files={_FILE: json.dumps(file).encode(), _TRUSTED: cas.all.encode()},
        )
        async with self._access(command, found, progress, life_s) as access:
            entry = {
                "vimId": found.vim.vim_id,
                "vimType": found.vim.vim_type,
                "interfaceInfo": self._interface(found.vim, cas),
                "accessInfo": access,
            }
            yield Prepared(sender.vim_key, entry, opening, self._secrets(found, access, key))

    async def _destinations(self, found: Found, progress: Progress) -> list[_Destination]:
        destinations = await self._destinations_of(found.url, progress)
        if found.cluster_uid is not None:
            management = await self._destinations_of(self._endpoint(found.vim), progress)
            if found.vim.of_vnf:
                management = await self._granted(management, progress)
            destinations += management
        if found.collected is not None:
            destinations += await self._proven_destinations(found.collected, progress)
        return destinations

    async def _destinations_of(self, url: str, progress: Progress) -> list[_Destination]:
        """Return all addresses of a URL that an operator has configured or allowed."""
        host, port = host_and_port(url)

        async def look_up() -> tuple[str, ...]:
            try:
                return await self.addresses_of(host)
            except OSError as error:
                raise NotThereYet(f"the name {host} cannot be resolved") from error

        return [
            _Destination(host, at, port)
            for at in await self.collector.wait(f"the address of {host}", look_up, progress)
        ]

    async def _granted(self, destinations: Sequence[_Destination], progress: Progress) -> list[_Destination]:
        granted: list[_Destination] = []
        for one in destinations:
            judged = await self.grants.granted((one.address,), one.port)
            granted += [one] * len(judged.reach)
            for refusal in judged.refused:
                await progress(f"the script cannot connect to {one.host}: {refusal}")
        return granted

    async def _proven_destinations(self, present: Collected, progress: Progress) -> list[_Destination]:
        """Return the addresses at which the workload cluster has shown that it is the one of the kubeconfig.

        The package decides what its Cluster object says of the endpoint. An address that does not prove itself by a certificate
        of the kubeconfig's CA, and by accepting the kubeconfig's credentials, could be any server that only this service reaches.
        """
        connection = present.credentials.connection
        host, port = host_and_port(present.facts.endpoint)
        if not cluster_trust(connection.interface_info.get("ssl_ca_cert")).is_verified:
            await progress(f"the script cannot connect to {host}: its kubeconfig does not verify the certificate")
            return []
        try:
            known = await self.addresses_of(host)
        except OSError:
            known = ()
        granted = await self._granted([_Destination(host, at, port) for at in known], progress)
        proven = [one for one in granted if await self.serves_at(connection, one.address)]
        if not proven:
            await progress(f"the script cannot connect to {host}: none of its addresses is the API of the cluster")
        return proven

    @asynccontextmanager
    async def _access(
        self, command: SendCredentials | WithdrawCredentials, found: Found, progress: Progress, life_s: float
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield the script's access data of the management cluster."""
        if found.cluster_uid is None:
            yield {}
            return
        if self.access == "vim":
            yield revealed(found.vim.access_info, self.key_ring)
            return
        api = self.collector.connect(found.vim)
        try:
            reader = await make_reader(
                api,
                command.cluster,
                cluster_uid=found.cluster_uid,
                life_s=life_s + _RESERVE_S,
                owner=command.vnf_instance_id,
            )
        except VnfmError as error:
            if not (isinstance(command, WithdrawCredentials) and command.force):
                raise
            await progress(f"the script has no access to the management cluster: {error}")
            yield {}
            return
        try:
            access = {"bearer_token": reader.token}
            own_api = self.collector.connect(as_reader(found.vim, reader.token))

            async def may_read() -> None:
                # An API server knows a new Role a moment later.
                if (await own_api.get(secret_path(command.cluster))).status == _FORBIDDEN:
                    raise NotThereYet("its Role is not in effect yet")

            await self.collector.wait("the account of the script", may_read, progress, retried=(NotThereYet,))
            yield access
        finally:
            try:
                await remove_reader(api, reader)
            except VnfmError as error:
                # The token expires, and the objects are deleted with the Cluster.
                log.warning("reader_account_left", cluster=command.cluster.name, reason=str(error))

    def _interface(self, vim: VimConnection, cas: TrustedCas) -> dict[str, Any]:
        given = revealed(vim.interface_info, self.key_ring)
        trust = cluster_trust(given.get("ssl_ca_cert"), skips_verification=given.get("skipTlsVerify") is True)
        how = {"ssl_ca_cert": trust.ca_pem or cas.machine} if trust.is_verified else {"skipTlsVerify": True}
        return {"endpoint": self._endpoint(vim), **how}

    def _endpoint(self, vim: VimConnection) -> str:
        return str(revealed(vim.interface_info, self.key_ring).get("endpoint", ""))

    def _secrets(self, found: Found, access: Mapping[str, Any], key: bytes) -> frozenset[str]:
        """Return the texts that the output of the script must not show."""
        known = [key.hex(), b64encode(key).decode(), *([access["bearer_token"]] if "bearer_token" in access else [])]
        map_secrets(found.vim.access_info, lambda secret: known.append(secret.reveal(self.key_ring)))
        if found.collected is not None:
            known += found.collected.credentials.secrets(self.key_ring)
        return frozenset(known)


def as_reader(vim: VimConnection, token: str) -> VimConnection:
    """Return the connection to a management cluster with another token, by the same way."""
    proxy = {name: value for name, value in vim.access_info.items() if name == PROXY_URL}
    return vim.model_copy(update={"access_info": {"bearer_token": Secret(token), **proxy}})


async def _unheard(_: str) -> None:
    """Nothing is waited for, so there is no progress."""


def _command(sender: CredentialsSender) -> SendCredentials | WithdrawCredentials:
    command = sender.sends or sender.withdraws
    assert command is not None, "one of them is set"
    return command


def _names(destinations: Iterable[_Destination]) -> dict[str, tuple[str, ...]]:
    """Return the addresses by name."""
    found: dict[str, dict[str, None]] = {}
    for one in destinations:
        found.setdefault(one.host, {})[one.address] = None
    return {host: tuple(addresses) for host, addresses in found.items()}
