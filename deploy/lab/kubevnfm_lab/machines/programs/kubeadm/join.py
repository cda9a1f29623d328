"""kubeadm join: workers and further masters."""

from __future__ import annotations

from dataclasses import dataclass

from kubevnfm_lab.machines.apiclient import ApiRefusal, ApiUnreachable
from kubevnfm_lab.machines.controlplanes import ControlPlane
from kubevnfm_lab.machines.nodes import JoinedNode, own_access
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options
from kubevnfm_lab.machines.programs.kubeadm import files, preflight
from kubevnfm_lab.machines.programs.kubeadm.config import TOKEN, KubeadmConfig, extra_args, read_config
from kubevnfm_lab.machines.programs.kubeadm.reach import control_plane_at, split_endpoint

VOTING = "kubeadm join phase etcd-join"
"""The verb of faults that stop a join between etcd's new member and its Node."""
NO_IDENTITY = "error execution phase preflight: couldn't validate the identity of the API Server: "


@dataclass(frozen=True)
class _Plan:
    endpoint: str
    token: str
    ca_hashes: list[str]
    unsafe: bool
    node_name: str
    node_ip: str
    control_plane: bool
    certificate_key: str


async def join(call: Call, given: Options) -> Exit:
    """Make the machine a node of the cluster behind an endpoint."""
    _, kubeadm_minor, _ = preflight.release(call, "kubeadm")
    plan = _plan(call, given, read_config(call, given, kubeadm_minor=kubeadm_minor))
    preflight.check(call, given, role="join-control-plane" if plan.control_plane else "join")
    plane = await _discover(call, plan)
    if plan.control_plane:
        _check_certificates(call, plane, plan)
    await _refuse_ready_namesake(call, plane, plan.node_name)
    if plan.control_plane:
        if call.world.control_planes.served_by(call.machine) is plane:
            # Seen with 1.34: it starts as the member that is listed already, and crashes because the data of that are gone.
            raise Failed("error execution phase etcd-join: the etcd member does not start: tocommit is out of range")
        files.write_control_plane(call.machine, plane)
    # The order of kubeadm's phases: certificates and manifests, the kubelet, etcd's member, the Node.
    files.write_kubelet(call.machine, plane, plan.node_name)
    if plan.control_plane:
        await call.world.control_planes.join(plane, call.machine, plan.node_name)
        # Here etcd counts the new member for its majority, and the cluster has no Node of it.
        await call.world.faults.check("program", VOTING, node=call.machine.name)
    node = JoinedNode(plane, plan.node_name, plan.node_ip, control_plane=plan.control_plane)
    await call.world.nodes.add(call.machine, node)
    kind = "a new control plane instance was created" if plan.control_plane else "has joined the cluster"
    return Exit(
        0,
        "[preflight] Running pre-flight checks\n[preflight] Reading configuration from the cluster...\n"
        "[kubelet-start] Starting the kubelet\n[kubelet-check] The kubelet is healthy after 500ms\n\n"
        f"This node {kind}:\n"
        "* Certificate signing request was sent to apiserver and a response was received.\n"
        "* The Kubelet was informed of the new secure connection details.\n\n"
        "Run 'kubectl get nodes' on the control-plane to see this node join the cluster.\n",
    )


def _plan(call: Call, given: Options, config: KubeadmConfig) -> _Plan:
    kind = "JoinConfiguration"
    discovery = config.section(kind, "discovery", "bootstrapToken") or {}
    registration = config.section(kind, "nodeRegistration") or {}
    control_plane = config.section(kind, "controlPlane")
    endpoint = given.words[1] if len(given.words) > 1 else str(discovery.get("apiServerEndpoint") or "")
    # kubeadm accepts one token for discovery and TLS bootstrap, or two separate ones.
    token = given.get("--token", "--discovery-token") or str(
        discovery.get("token") or config.text(kind, "discovery", "tlsBootstrapToken")
    )
    if not endpoint:
        raise Failed("discovery.bootstrapToken.apiServerEndpoint: Required value: "
                     "a host and port must be specified")  # fmt: skip
    if not TOKEN.fullmatch(token):
        raise Failed(f'discovery.bootstrapToken.token: Invalid value: "{token}": the bootstrap token is invalid')
    hashes = [
        *(each for group in given.all("--discovery-token-ca-cert-hash") for each in group.split(",")),
        *(str(each) for each in discovery.get("caCertHashes") or []),
    ]
    unsafe = given.has("--discovery-token-unsafe-skip-ca-verification") or bool(
        discovery.get("unsafeSkipCAVerification")
    )
    if not hashes and not unsafe:
        raise Failed('discovery.bootstrapToken: Invalid value: "": using token-based discovery without caCertHashes can '
                     "be unsafe. Set unsafeSkipCAVerification as true in your kubeadm config file or pass "
                     "--discovery-token-unsafe-skip-ca-verification flag to continue")  # fmt: skip
    name = given.get("--node-name") or str(registration.get("name") or "") or call.machine.hostname
    first = call.machine.addresses[0]
    advertised = given.get("--apiserver-advertise-address") or config.text(
        kind, "controlPlane", "localAPIEndpoint", "advertiseAddress"
    )
    return _Plan(
        endpoint=endpoint,
        token=token,
        ca_hashes=hashes,
        unsafe=unsafe,
        node_name=name.lower(),
        node_ip=extra_args(registration.get("kubeletExtraArgs")).get("node-ip", advertised or first),
        control_plane=given.has("--control-plane") or control_plane is not None,
        certificate_key=given.get("--certificate-key") or config.text(kind, "controlPlane", "certificateKey"),
    )


async def _discover(call: Call, plan: _Plan) -> ControlPlane:
    host, port = split_endpoint(plan.endpoint)
    plane = await control_plane_at(call, plan.endpoint)
    if plane is None:
        raise Failed(
            f"{NO_IDENTITY}failed to request the cluster-info ConfigMap: Get "
            f'"https://{host}:{port}/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s": '
            f"dial tcp {host}:{port}: connect: connection refused"
        )
    # kubeadm verifies the token by a signature in cluster-info that the token's Secret produces.
    if not plane.cluster.bootstrap_token_is_valid(plan.token):
        raise Failed(
            f"{NO_IDENTITY}could not find a JWS signature in the cluster-info ConfigMap for token ID "
            f'"{plan.token.partition(".")[0]}"'
        )
    # The hash protects a joining node from a server that only pretends to be the cluster.
    if not plan.unsafe and plane.cluster.ca_cert_hash() not in plan.ca_hashes:
        raise Failed(
            f"{NO_IDENTITY}cluster CA found in cluster-info ConfigMap is invalid: none of the public keys "
            f'"{plane.cluster.ca_cert_hash()}" are pinned'
        )
    return plane


def _check_certificates(call: Call, plane: ControlPlane, plan: _Plan) -> None:
    if not plan.certificate_key:
        raise Failed(
            "error execution phase preflight: \nOne or more conditions for hosting a new control plane instance is not "
            "satisfied.\n\n[failure loading certificate for CA: couldn't load the certificate file "
            "/etc/kubernetes/pki/ca.crt: open /etc/kubernetes/pki/ca.crt: no such file or directory]\n\nPlease ensure "
            "that:\n* The cluster has a stable controlPlaneEndpoint address.\n* The certificates that must be shared "
            "among control plane instances are provided.\n"
        )
    if not plane.accepts_certificate_key(plan.certificate_key):
        raise Failed(
            "error execution phase control-plane-prepare/download-certs: error downloading certs: error downloading the "
            'secret: Secret "kubeadm-certs" was not found in the "kube-system" Namespace. This Secret might have '
            "expired. Please, run `kubeadm init phase upload-certs --upload-certs` on a control plane to generate a "
            "new one"
        )


async def _refuse_ready_namesake(call: Call, plane: ControlPlane, name: str) -> None:
    """Fail if a Ready Node of that name exists: kubeadm would take over another machine's Node."""
    # The other machine's state may still be on its way to the Node object.
    await call.world.nodes.settled()
    try:
        node = await call.world.apis.api(own_access(plane)).request("GET", f"/api/v1/nodes/{name}")
    except ApiRefusal as refusal:
        if refusal.status == 404:
            return
        raise Failed(f"error execution phase kubelet-start: cannot get Node {name!r}: {refusal}") from refusal
    except ApiUnreachable as error:
        raise Failed(f"error execution phase kubelet-start: cannot get Node {name!r}: {error}") from error
    conditions = (node.get("status") or {}).get("conditions") or []
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        raise Failed(
            f'error execution phase kubelet-start: a Node with name "{name}" and status "Ready" already exists in the '
            "cluster. You must delete the existing Node or change the name of this new joining Node"
        )
