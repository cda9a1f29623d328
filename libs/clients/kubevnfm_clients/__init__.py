"""Typed clients of the services' internal HTTP APIs."""

from kubevnfm_clients.cloud_identity import CloudIdentity
from kubevnfm_clients.http import InternalApi, ServiceUnavailable
from kubevnfm_clients.instances import HttpInstances
from kubevnfm_clients.logs import HttpCredentials, HttpNodeLogs
from kubevnfm_clients.packages import HttpPackages
from kubevnfm_clients.ports import (
    AwaitedCallbacks,
    CloudIdentities,
    CredentialsStore,
    InstanceOperations,
    NodeLogs,
    Packages,
    VimDirectory,
    Vims,
    VimUsers,
)
from kubevnfm_clients.session import Peers, internal_session
from kubevnfm_clients.vims import HttpCloudIdentities, HttpVimDirectory, HttpVims, HttpVimUsers

__all__ = [
    "AwaitedCallbacks",
    "CloudIdentities",
    "CloudIdentity",
    "CredentialsStore",
    "HttpCloudIdentities",
    "HttpCredentials",
    "HttpInstances",
    "HttpNodeLogs",
    "HttpPackages",
    "HttpVimDirectory",
    "HttpVimUsers",
    "HttpVims",
    "InstanceOperations",
    "InternalApi",
    "NodeLogs",
    "Packages",
    "Peers",
    "ServiceUnavailable",
    "VimDirectory",
    "VimUsers",
    "Vims",
    "internal_session",
]
