"""kubeadm init, and its phase upload-certs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from kubevnfm_lab.machines import addons
from kubevnfm_lab.machines.apiclient import ApiRefusal, ApiUnreachable
from kubevnfm_lab.machines.controlplanes import API_PORT, ControlPlane
from kubevnfm_lab.machines.nodes import JoinedNode, own_access
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options
from kubevnfm_lab.machines.programs.kubeadm import files, images, preflight
from kubevnfm_lab.machines.programs.kubeadm.config import KubeadmConfig, extra_args, read_config, seconds
from kubevnfm_lab.machines.programs.kubeadm.reach import control_plane_at, split_endpoint

DAY_S = 86_400.0


@dataclass(frozen=True)
class _Plan:
    """The settings of an init, from flags and file together."""

    node_name: str
    address: str
    node_ip: str
    endpoint: str
    settings: Mapping[str, str]
    san: list[str]
    certificate_key: str
    upload: bool
    token_ttl_s: float
    patience_s: float
    """How long kubeadm waits for the first answers of the API server."""
    has_proxy: bool
    """Whether the addon kube-proxy is applied."""


async def init(call: Call, given: Options) -> Exit:
    """Make the machine the first master of a new cluster."""
    _, kubeadm_minor, _ = preflight.release(call, "kubeadm")
    config = read_config(call, given, kubeadm_minor=kubeadm_minor)
    if given.words[1:3] == ["phase", "upload-certs"]:
        return await upload_certs(call, given, config)
    # Other single phases have no effect of their own here.
    if given.words[1:2] == ["phase"]:
        return Exit()
    plan = _plan(call, given, config)
    version = plan.settings["kubernetesVersion"]
    minor = int(version.lstrip("v").split(".")[1])
    # kubeadm supports its own minor version and the one before.
    if minor < kubeadm_minor - 1 or minor > kubeadm_minor:
        raise Failed(
            f"this version of kubeadm only supports deploying clusters with the control plane version >= "
            f"1.{kubeadm_minor - 1}.0. Current version: {version}"
        )
    preflight.check(call, given, role="init", control_plane_version=version)
    plane = await _start(call, plan)
    token = plane.create_token(plan.token_ttl_s)
    lines = [f"[init] Using Kubernetes version: {version}", "[preflight] Running pre-flight checks",
             '[certs] Using certificateDir folder "/etc/kubernetes/pki"',
             '[kubeconfig] Using kubeconfig folder "/etc/kubernetes"',
             '[control-plane] Using manifest folder "/etc/kubernetes/manifests"',
             "[api-check] The API server is healthy after 1.0s"]  # fmt: skip
    if plan.upload or plan.certificate_key:
        key = plane.add_certificate_key(plan.certificate_key or None)
        lines.append('[upload-certs] Storing the certificates in Secret "kubeadm-certs" in the "kube-system" Namespace')
        if not given.has("--skip-certificate-key-print"):
            lines.append(f"[upload-certs] Using certificate key:\n{key}")
    lines.append("[addons] Applied essential addon: CoreDNS")
    if plan.has_proxy:
        lines.append("[addons] Applied essential addon: kube-proxy")
    lines += ["", "Your Kubernetes control-plane has initialized successfully!", ""]  # fmt: skip
    if not given.has("--skip-token-print"):
        lines += ["Then you can join any number of worker nodes by running the following on each as root:", "",
                  join_command(plane, token)]  # fmt: skip
    return Exit(0, "\n".join(lines) + "\n")


def join_command(plane: ControlPlane, token: str) -> str:
    """Return the command line that kubeadm prints for workers."""
    return f"kubeadm join {plane.endpoint} --token {token} \\\n\t--discovery-token-ca-cert-hash {plane.cluster.ca_cert_hash()} "


def _plan(call: Call, given: Options, config: KubeadmConfig) -> _Plan:
    machine, kind = call.machine, "InitConfiguration"
    cluster = "ClusterConfiguration"
    address = given.get("--apiserver-advertise-address") or config.text(kind, "localAPIEndpoint", "advertiseAddress")
    # Without an address kubeadm takes the interface with the default route, here the first one.
    address = address if address not in ("", "0.0.0.0") else machine.addresses[0]
    endpoint = given.get("--control-plane-endpoint") or config.text(cluster, "controlPlaneEndpoint")
    if endpoint:
        host, port = split_endpoint(endpoint)
        endpoint = f"{host}:{port}"
    installed = "v" + machine.packages.installed["kubeadm"].version.partition("-")[0]
    version = given.get("--kubernetes-version") or config.text(cluster, "kubernetesVersion") or installed
    registration = config.section(kind, "nodeRegistration") or {}
    san = [
        *given.get("--apiserver-cert-extra-sans").split(","),
        *(config.section(cluster, "apiServer", "certSANs") or []),
    ]
    tokens = config.section(kind, "bootstrapTokens") or [{}]
    try:
        ttl_s = seconds(given.get("--token-ttl") or str(tokens[0].get("ttl") or "24h"))
        patience_s = _patience_s(config)
    except ValueError as error:
        raise Failed(str(error)) from error
    name = given.get("--node-name") or str(registration.get("name") or "") or machine.hostname
    return _Plan(
        node_name=name.lower(),
        address=address,
        node_ip=extra_args(registration.get("kubeletExtraArgs")).get("node-ip", address),
        endpoint=endpoint,
        settings={
            "kubernetesVersion": version
            if version.startswith("v")
            else installed
            if "stable" in version
            else f"v{version}",
            "podSubnet": given.get("--pod-network-cidr")
            or config.text(cluster, "networking", "podSubnet")
            or "10.244.0.0/16",
            "serviceSubnet": given.get("--service-cidr")
            or config.text(cluster, "networking", "serviceSubnet")
            or "10.96.0.0/12",
            "configApi": config.api,
            "controllerManager": json.dumps(config.section(cluster, "controllerManager") or {}),
        },
        san=[str(each) for each in san if each],
        certificate_key=given.get("--certificate-key") or config.text(kind, "certificateKey"),
        upload=given.has("--upload-certs"),
        token_ttl_s=ttl_s,
        patience_s=patience_s,
        has_proxy="addon/kube-proxy" not in given.get("--skip-phases").split(","),
    )


def _patience_s(config: KubeadmConfig) -> float:
    """Return the shorter of kubeadm's two limits; v1beta3 has one."""
    if config.api.endswith("v1beta3"):
        return seconds(config.text("ClusterConfiguration", "apiServer", "timeoutForControlPlane") or "4m0s")
    of = "InitConfiguration", "timeouts"
    health = seconds(config.text(*of, "controlPlaneComponentHealthCheck") or "4m0s")
    # While the control plane starts, kubeadm already calls its API.
    return min(health, seconds(config.text(*of, "kubernetesAPICall") or "1m0s"))


async def _start(call: Call, plan: _Plan) -> ControlPlane:
    machine, world = call.machine, call.world
    # etcd binds to the advertised address, which must be one of the machine.
    if plan.address not in machine.addresses:
        raise Failed(_no_control_plane(f"etcd cannot assign requested address {plan.address}"))
    sandbox = images.missing_sandbox(call)
    if sandbox:
        raise Failed(_no_control_plane(f'failed to pull image "{sandbox}": {sandbox}: not found'))
    if world.settings.first_answer_s > plan.patience_s:
        raise Failed(_no_control_plane("client rate limiter Wait returned an error: context deadline exceeded"))
    try:
        plane = await world.control_planes.create(
            machine,
            node_name=plan.node_name,
            address=plan.address,
            endpoint=plan.endpoint,
            settings=dict(plan.settings),
            san=plan.san,
        )
    except OSError as error:
        raise Failed(
            "error execution phase preflight: [preflight] Some fatal errors occurred:\n"
            f"\t[ERROR Port-{API_PORT}]: Port {API_PORT} is in use ({error.strerror})"
        ) from error
    # At once: a reset after a kill recognises by these files that there is a control plane.
    files.write_control_plane(machine, plane)
    # An earlier cluster at this address had other certificates; its cached connections must go.
    await world.apis.forget(own_access(plane).server)
    api = world.apis.api(own_access(plane))
    # kubeadm waits for the endpoint itself, so a virtual address without a balancer fails here.
    if await control_plane_at(call, plane.endpoint) is not plane:
        files.write_kubelet(machine, plane, plan.node_name)
        raise Failed(_no_control_plane(f"context deadline exceeded: https://{plane.endpoint} does not answer"))
    try:
        for obj in addons.configuration(plan.settings, plane.endpoint, own_access(plane)):
            await api.apply(obj, namespace="kube-system", manager="kubeadm")
        files.write_kubelet(machine, plane, plan.node_name)
        await world.nodes.add(machine, JoinedNode(plane, plan.node_name, plan.node_ip, control_plane=True))
        # kubeadm writes kube-proxy last: scripts take it as the mark of a complete init.
        for obj in addons.dns_and_proxy(plan.settings, coredns_image=images.coredns(call), has_proxy=plan.has_proxy):
            await api.apply(obj, namespace="kube-system", manager="kubeadm")
    except (ApiRefusal, ApiUnreachable) as error:
        raise Failed(f"error execution phase upload-config/kubeadm: {error}") from error
    return plane


def _no_control_plane(reason: str) -> str:
    return f"error execution phase wait-control-plane: failed while waiting for the control plane to start: {reason}"


async def upload_certs(call: Call, given: Options, config: KubeadmConfig) -> Exit:
    """Run ``kubeadm init phase upload-certs --upload-certs``: print a new certificate key, valid for two hours."""
    plane = call.world.control_planes.served_by(call.machine)
    if plane is None:
        raise Failed(
            "error execution phase upload-certs: failed to load admin kubeconfig: "
            "open /etc/kubernetes/admin.conf: no such file or directory"
        )
    if not given.has("--upload-certs"):
        return Exit(0, "[upload-certs] Skipping phase. Please see --upload-certs\n")
    if await control_plane_at(call, plane.endpoint) is not plane:
        raise Failed(
            f"error execution phase upload-certs: error uploading certs: https://{plane.endpoint} does not answer"
        )
    key = plane.add_certificate_key(
        given.get("--certificate-key") or config.text("InitConfiguration", "certificateKey") or None
    )
    shown_key = "" if given.has("--skip-certificate-key-print") else f"[upload-certs] Using certificate key:\n{key}\n"
    return Exit(
        0,
        f'[upload-certs] Storing the certificates in Secret "kubeadm-certs" in the "kube-system" Namespace\n{shown_key}',
    )
