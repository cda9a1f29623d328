"""One cluster: its store, its API server and its controllers."""

from __future__ import annotations

import base64
import secrets
import ssl
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network
from typing import Any, Final

from kubevnfm_lab import yaml_text
from kubevnfm_lab.kubernetes.admission import Admission
from kubevnfm_lab.kubernetes.controllers import all_controllers
from kubevnfm_lab.kubernetes.controllers.capi.workloads import WorkloadLabs
from kubevnfm_lab.kubernetes.controllers.nodes import node_object, node_status
from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane
from kubevnfm_lab.kubernetes.objects import Key, Obj, annotations_of, condition_is_true, labels_of
from kubevnfm_lab.kubernetes.pki import Authority
from kubevnfm_lab.kubernetes.rbac import Rbac, initial_objects
from kubevnfm_lab.kubernetes.registry import Registry
from kubevnfm_lab.kubernetes.resources import ResourceTable
from kubevnfm_lab.kubernetes.server import ApiServer
from kubevnfm_lab.kubernetes.store import Store
from kubevnfm_lab.kubernetes.tokens import MASTERS, Tokens, bootstrap_secret, bootstrap_secret_holds
from kubevnfm_lab.ports import Faults, Ledger

_NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
_TOKEN_LETTERS: Final = string.ascii_lowercase + string.digits
_ADMIN: Final = "kubernetes-admin"


class LabCluster:
    """``kubevnfm_lab.ports.Cluster``: a Kubernetes cluster that lives in this process."""

    def __init__(
        self,
        *,
        address: str,
        port: int,
        version: str,
        pod_cidr: str,
        service_cidr: str,
        san: Sequence[str],
        faults: Faults,
        ledger: Ledger,
        delay_s: float,
        has_network: bool = True,
        clusters: WorkloadLabs | None = None,
    ) -> None:
        """``has_network``: False leaves nodes unready until a DaemonSet brings the network; ``clusters``: see
        `all_controllers`.
        """
        self.address, self.port, self.pod_cidr, self.service_cidr = address, port, pod_cidr, service_cidr
        self._version = version if version.startswith("v") else f"v{version}"
        self._authority = Authority()
        self.store, self.table = Store(), ResourceTable()
        self.registry = Registry(
            self.store, self.table, Admission(self.store, service_cidr=service_cidr, ca_pem=self._authority.pem)
        )
        self._tokens = Tokens(self.store)
        self._admin_token = self._tokens.create_for_user(_ADMIN, groups=(MASTERS,))
        self._admin_kubeconfig: str | None = None
        self.plane = ControlPlane(self.registry, delay_s=delay_s)
        all_controllers(
            self.plane,
            tokens=self._tokens,
            ca_pem=self._authority.pem,
            pod_cidr=pod_cidr,
            has_network=has_network,
            clusters=clusters,
            faults=faults,
            ledger=ledger,
        )
        self._server = ApiServer(
            self.registry,
            version=self._version,
            tokens=self._tokens,
            rbac=Rbac(self.store),
            faults=faults,
            ledger=ledger,
        )
        self._joins: Counter[str] = Counter()
        self._sans = tuple(san)
        self._tls: ssl.SSLContext | None = None

    async def start(self) -> None:
        """Start serving, and create what a new cluster contains; raise OSError if the address is taken."""
        # The Service "kubernetes" always has the first address of the service network.
        service_address = str(next(IPv4Network(self.service_cidr).hosts()))
        # Clients inside the cluster use these names, so the certificate must contain them.
        domain = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local")
        self._sans = (self.address, "127.0.0.1", "localhost", service_address, *domain, *self._sans)
        await self.resume()
        for name in _NAMESPACES:
            self.plane.create("namespaces", {"metadata": {"name": name}})
        for obj in initial_objects():
            self.plane.create(f"{obj['kind'].lower()}s.rbac.authorization.k8s.io", obj)
        ports = [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": self.port}]
        self.plane.create(
            "services",
            {
                "metadata": {
                    "name": "kubernetes",
                    "namespace": "default",
                    "labels": {"component": "apiserver", "provider": "kubernetes"},
                },
                "spec": {"clusterIP": service_address, "ports": ports},
            },
        )

    async def resume(self) -> None:
        """Serve the API again, with the same certificate as before; raise OSError if the address is taken."""
        # Created once: after a restart clients must find the certificate that they know.
        if self._tls is None:
            self._tls = self._authority.server_context(self._sans)
        await self._server.start(self.address, self.port, self._tls)

    async def suspend(self) -> None:
        """Stop serving the API; all objects are kept."""
        await self._server.close()

    async def close(self) -> None:
        """Stop the API server and the controllers."""
        await self.plane.close()
        await self._server.close()

    @property
    def endpoint(self) -> str:
        """See `ports.Cluster`."""
        return f"https://{self.address}:{self.port}"

    @property
    def ca_pem(self) -> str:
        """See `ports.Cluster`."""
        return self._authority.pem

    @property
    def admin_token(self) -> str:
        """See `ports.Cluster`."""
        return self._admin_token

    @property
    def version(self) -> str:
        """See `ports.Cluster`."""
        return self._version

    @property
    def open_watches(self) -> int:
        """The number of watches that clients hold open."""
        return self._server.open_watches

    def ca_cert_hash(self) -> str:
        """See `ports.Cluster`."""
        return self._authority.cert_hash()

    def kubeconfig_admin(self) -> str:
        """Return admin.conf as kubeadm writes it: YAML with the CA and a client certificate of system:masters."""
        # Issued on demand, since most tests use the token and a certificate costs a key.
        if self._admin_kubeconfig is None:
            self._admin_kubeconfig = self.new_admin_kubeconfig()
        return self._admin_kubeconfig

    def new_admin_kubeconfig(self) -> str:
        """Return another one, with a client certificate of its own; the earlier ones stay valid."""
        certificate, key = self._authority.issue_client(_ADMIN, groups=(MASTERS,))

        def encoded(text: str) -> str:
            return base64.b64encode(text.encode()).decode()

        context = f"{_ADMIN}@kubernetes"
        config: Mapping[str, Any] = {
            "apiVersion": "v1",
            "kind": "Config",
            "preferences": {},
            "clusters": [
                {
                    "name": "kubernetes",
                    "cluster": {"server": self.endpoint, "certificate-authority-data": encoded(self.ca_pem)},
                }
            ],
            "users": [
                {
                    "name": _ADMIN,
                    "user": {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)},
                }
            ],
            "contexts": [{"name": context, "context": {"cluster": "kubernetes", "user": _ADMIN}}],
            "current-context": context,
        }
        return yaml_text.dump(config, sort_keys=False)

    async def add_node(self, name: str, *, address: str, control_plane: bool) -> None:
        """See `ports.Cluster`; every call counts as a join."""
        self._joins[name] += 1
        key = Key("", name)
        if self.store.get("nodes", key) is None:
            # The index gives each node its own podCIDR.
            index = len(self.store.list("nodes"))
            self.plane.create("nodes", node_object(name, control_plane=control_plane, index=index))
        self.registry.change(
            "nodes", key, lambda node: node.update(status=node_status(node, address=address, version=self._version))
        )

    def create_bootstrap_token(self, *, ttl_s: float) -> str:
        """See `ports.Cluster`; the token is a Secret in kube-system, as kubeadm makes it."""
        parts = ("".join(secrets.choice(_TOKEN_LETTERS) for _ in range(length)) for length in (6, 16))
        token = ".".join(parts)
        self.plane.create("secrets", bootstrap_secret(token, ttl_s=ttl_s))
        return token

    def bootstrap_token_is_valid(self, token: str) -> bool:
        """See `ports.Cluster`."""
        return bootstrap_secret_holds(self._bootstrap_secret(token), token)

    def delete_bootstrap_token(self, token: str) -> None:
        """See `ports.Cluster`; does nothing if there is none."""
        secret = self._bootstrap_secret(token)
        if secret is not None:
            self.plane.delete("secrets", secret)

    def _bootstrap_secret(self, token: str) -> Obj | None:
        return self.store.get("secrets", Key("kube-system", f"bootstrap-token-{token.partition('.')[0]}"))

    def inventory(self) -> Mapping[str, Any]:
        """Return the cluster's part of the lab's inventory: its pods, and the objects that came in over the API."""
        objects: dict[str, Any] = {}
        for resource in self.store.resources_with_objects():
            for obj in self.store.list(resource):
                metadata = obj["metadata"]
                # Events are left out: which of them exist depends on timing.
                if metadata["uid"] in self.registry.made_by_users and obj["kind"] != "Event":
                    place = f"{obj['kind']}/{metadata.get('namespace', '')}/{metadata['name']}"
                    objects[place] = {"uid": metadata["uid"], "labels": dict(labels_of(obj))}
        return {
            "endpoint": self.endpoint,
            "version": self._version,
            "nodes": [
                {
                    "name": node["metadata"]["name"],
                    "labels": dict(labels_of(node)),
                    "annotations": dict(annotations_of(node)),
                    "ready": condition_is_true(node, "Ready"),
                }
                for node in self.store.list("nodes")
            ],
            "joins": dict(self._joins),
            "objects": objects,
            "pods": [
                {
                    "namespace": pod["metadata"]["namespace"],
                    "name": pod["metadata"]["name"],
                    "labels": dict(labels_of(pod)),
                    "images": [each["image"] for each in pod["spec"]["containers"]],
                }
                for pod in self.store.list("pods")
            ],
        }
