"""kubeadm: which command does what; tokens, reset, certs, config images and version."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from kubevnfm_lab.machines.apiclient import ApiRefusal, ApiUnreachable
from kubevnfm_lab.machines.controlplanes import ControlPlane
from kubevnfm_lab.machines.kubeconfig import BadKubeconfig, read_kubeconfig
from kubevnfm_lab.machines.nodes import own_access
from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options, Program, options
from kubevnfm_lab.machines.programs.kubeadm import files, images, preflight
from kubevnfm_lab.machines.programs.kubeadm.config import TOKEN, seconds
from kubevnfm_lab.machines.programs.kubeadm.init import DAY_S, init, join_command
from kubevnfm_lab.machines.programs.kubeadm.join import join
from kubevnfm_lab.machines.programs.kubeadm.reach import control_plane_at
from kubevnfm_lab.machines.wordlist import words

WITH_VALUE = words(
    "--config --kubeconfig --token --discovery-token --discovery-token-ca-cert-hash --node-name --certificate-key --ttl "
    "--pod-network-cidr --service-cidr --control-plane-endpoint --apiserver-advertise-address --kubernetes-version "
    "--apiserver-cert-extra-sans --cri-socket --ignore-preflight-errors --token-ttl --image-repository --upload-certs-key "
    "--description -o --output --v -v --usages --groups --apiserver-bind-port --cert-dir --patches --skip-phases "
    "--service-dns-domain --tls-bootstrap-token --cleanup-tmp-dir-path"
)


async def kubeadm(call: Call) -> Exit:
    """Run one command of kubeadm."""
    given = options(call.args, with_value=WITH_VALUE)
    match given.words:
        case ["init", *_]:
            return await init(call, given)
        case ["join", *_]:
            return await join(call, given)
        case ["reset", *_]:
            return await _reset(call, given)
        case ["token", "create", *rest]:
            return await _create_token(call, given, rest)
        case ["token", "delete", *names]:
            return await _delete_tokens(call, given, names)
        case ["token", "list", *_]:
            return await _list_tokens(call, given)
        case ["token", "generate"]:
            return Exit(0, f"{secrets.token_hex(3)}.{secrets.token_hex(8)}\n")
        case ["certs", "certificate-key"]:
            return Exit(0, f"{secrets.token_hex(32)}\n")
        case ["certs", *_]:
            return Exit(0, "CERTIFICATE   EXPIRES   RESIDUAL TIME\nadmin.conf    364d      364d\n")
        case ["config", "images", "list" | "pull" as verb, *_]:
            return _images(call, given, pull=verb == "pull")
        case ["config", *_]:
            return Exit()
        case ["version", *_]:
            return _version(call, given)
    raise Failed(f'unknown command "{given.words[0] if given.words else ""}" for "kubeadm"')


async def _reset(call: Call, given: Options) -> Exit:
    if not call.is_root:
        raise Failed("error execution phase preflight: [preflight] Some fatal errors occurred:\n"
                     "\t[ERROR IsPrivilegedUser]: user is not running as root")  # fmt: skip
    # Without -f kubeadm asks for confirmation, and scripts without a terminal give no answer.
    if not given.has("-f", "--force"):
        answer = (await call.read_stdin()).strip().lower()
        if answer not in (b"y", b"yes"):
            raise Failed("error execution phase preflight: aborted reset operation")
    # The Node stops being ready first, then the files and the etcd member go.
    joined = call.world.nodes.node_of(call.machine)
    call.world.nodes.remove(call.machine)
    files.reset(call.machine)
    if joined is None:
        # Seen with 1.34: kubeadm reads the cluster's configuration by its Node, and without one leaves the member listed.
        await call.world.control_planes.machine_gone(call.machine)
    else:
        await call.world.control_planes.leave(call.machine)
    return Exit(
        0,
        '[reset] Stopping the kubelet service\n[reset] Unmounting mounted directories in "/var/lib/kubelet"\n'
        "[reset] Deleting contents of directories: [/etc/kubernetes/manifests /var/lib/kubelet /etc/kubernetes/pki]\n\n"
        "The reset process does not clean CNI configuration. To do so, you must remove /etc/cni/net.d\n",
    )


async def _plane(call: Call, given: Options) -> ControlPlane:
    name = given.get("--kubeconfig") or call.env.get("KUBECONFIG") or "/etc/kubernetes/admin.conf"
    file = call.path(name)
    try:
        access = read_kubeconfig(file, shown=call.machine.shown(file))
    except BadKubeconfig:
        raise Failed(f"failed to load admin kubeconfig: open {name}: no such file or directory") from None
    plane = await control_plane_at(call, access.server)
    if plane is None:
        raise Failed(f'timed out waiting for the condition: Get "{access.server}/api": connect: connection refused')
    return plane


async def _create_token(call: Call, given: Options, rest: list[str]) -> Exit:
    plane = await _plane(call, given)
    try:
        ttl_s = seconds(given.get("--ttl", default="24h0m0s"))
    except ValueError as error:
        raise Failed(f'invalid argument "{given.get("--ttl")}" for "--ttl" flag: {error}') from error
    if rest:
        if not TOKEN.fullmatch(rest[0]):
            raise Failed(
                f'the bootstrap token "{rest[0]}" was not of the form "\\A([a-z0-9]{{6}})\\.([a-z0-9]{{16}})\\z"'
            )
        # A named token is created through the API, so that the server's own validation applies.
        token = await _named_token(call, plane, rest[0], ttl_s or DAY_S)
    else:
        token = plane.create_token(ttl_s)
    if not given.has("--print-join-command"):
        return Exit(0, f"{token}\n")
    line = join_command(plane, token).replace("\\\n\t", "")
    key = given.get("--certificate-key")
    return Exit(0, f"{line}--control-plane --certificate-key {key}\n" if key else f"{line}\n")


async def _named_token(call: Call, plane: ControlPlane, token: str, ttl_s: float) -> str:
    token_id, _, secret = token.partition(".")
    obj = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "bootstrap.kubernetes.io/token",
        "metadata": {"name": f"bootstrap-token-{token_id}", "namespace": "kube-system"},
        "stringData": {
            "token-id": token_id,
            "token-secret": secret,
            "expiration": (datetime.now(UTC) + timedelta(seconds=ttl_s)).isoformat(),
            "usage-bootstrap-authentication": "true",
            "usage-bootstrap-signing": "true",
        },
    }
    try:
        await call.world.apis.api(own_access(plane)).request("POST", "/api/v1/namespaces/kube-system/secrets", body=obj)
    except (ApiRefusal, ApiUnreachable) as error:
        raise Failed(
            f'a token with id "{token_id}" already exists' if "exists" in str(error) else str(error)
        ) from error
    plane.tokens[token] = time.time() + ttl_s
    return token


async def _delete_tokens(call: Call, given: Options, names: list[str]) -> Exit:
    plane = await _plane(call, given)
    output = ""
    for name in names:
        token_id = name.partition(".")[0]
        # Users may give the whole token or only its id.
        found = [token for token in plane.tokens if token.startswith(f"{token_id}.")]
        if not found:
            raise Failed(
                f'failed to delete bootstrap token "{token_id}": secrets "bootstrap-token-{token_id}" not found',
                stdout=output,
            )
        for token in found:
            plane.cluster.delete_bootstrap_token(token)
            del plane.tokens[token]
        output += f'bootstrap token "{token_id}" deleted\n'
    return Exit(0, output)


async def _list_tokens(call: Call, given: Options) -> Exit:
    plane = await _plane(call, given)
    valid = [
        (token, expires) for token, expires in plane.tokens.items() if plane.cluster.bootstrap_token_is_valid(token)
    ]
    if given.get("-o", "--output") == "json":
        rows = [
            {"kind": "BootstrapToken", "token": token, "usages": ["signing", "authentication"]} for token, _ in valid
        ]
        return Exit(0, "".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{token}   {_left(expires)}   authentication,signing\n" for token, expires in valid]
    return Exit(0, "TOKEN                     TTL         USAGES\n" * bool(lines) + "".join(lines))


def _left(expires: float) -> str:
    return f"{max(0, int(expires - time.time()))}s" if expires else "<forever>"


def _images(call: Call, given: Options, *, pull: bool) -> Exit:
    names = images.listed(call, given.get("--kubernetes-version"), given.get("--image-repository"))
    if not pull:
        return Exit(0, "".join(f"{name}\n" for name in names))
    if not call.machine.units.is_active("containerd"):
        raise Failed(f'failed to pull image "{names[0]}": connection refused: unix:///run/containerd/containerd.sock')
    for name in names:
        call.machine.images.pull(name)
    return Exit(0, "".join(f"[config/images] Pulled {name}\n" for name in names))


def _version(call: Call, given: Options) -> Exit:
    major, minor, patch = preflight.release(call, "kubeadm")
    version = f"v{major}.{minor}.{patch}"
    info = {"major": str(major), "minor": str(minor), "gitVersion": version, "platform": "linux/amd64"}
    match given.get("-o", "--output"):
        case "short":
            return Exit(0, f"{version}\n")
        case "json":
            return Exit(0, json.dumps({"clientVersion": info}, indent=2) + "\n")
    return Exit(0, f'kubeadm version: &version.Info{{Major:"{major}", Minor:"{minor}", GitVersion:"{version}"}}\n')


PROGRAMS: Mapping[str, Program] = {"kubeadm": kubeadm}
