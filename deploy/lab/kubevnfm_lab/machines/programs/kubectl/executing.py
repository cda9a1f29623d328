"""kubectl exec: only into etcd's pods, for etcdctl; the lab's containers have no other programs."""

from __future__ import annotations

import json

from kubevnfm_lab.machines.controlplanes import ControlPlane
from kubevnfm_lab.machines.programs.call import Exit, Failed, Options, options
from kubevnfm_lab.machines.programs.kubeadm.reach import control_plane_at
from kubevnfm_lab.machines.programs.kubectl.session import Session

ETCDCTL_WITH_VALUE = ("-w", "--write-out", "--endpoints", "--cacert", "--cert", "--key")


async def execute(session: Session) -> Exit:
    """Run etcdctl in a pod ``etcd-<node>``: member list, member remove, endpoint health."""
    pod, *command = [word for word in session.given.words[1:] if word != "--"]
    if command[:2] == ["sh", "-c"]:
        command = command[2].split()
    plane = await control_plane_at(session.call, session.api.access.server)
    if plane is None:
        raise Failed(f"error: unable to upgrade connection: {session.api.access.server} does not answer")
    name = pod.removeprefix("pod/")
    members = {f"etcd-{member.node_name}": member for member in plane.members.values()}
    if name not in members:
        raise Failed(f'Error from server (NotFound): pods "{name}" not found')
    if not members[name].alive:
        address = members[name].machine.addresses[0]
        raise Failed(f"Error from server: error dialing backend: dial tcp {address}:10250: connect: no route to host")
    if members[name].refusals > 0:
        members[name].refusals -= 1
        # Seen with 1.34: text of the kubelet, by way of kubectl.
        raise Failed(
            "error: unable to upgrade connection: Authorization error (user=kube-apiserver-kubelet-client, verb=create, "
            "resource=nodes, subresource(s)=[proxy])"
        )
    while command and "=" in command[0] and not command[0].startswith("-"):
        command = command[1:]  # drop assignments like ETCDCTL_API=3
    if not command or command[0].rsplit("/", 1)[-1] != "etcdctl":
        raise Failed(f'OCI runtime exec failed: exec failed: unable to start container process: exec: "{command[0] if command else ""}": '
                     "executable file not found in $PATH: unknown\ncommand terminated with exit code 126", 126)  # fmt: skip
    given = options(command[1:], with_value=ETCDCTL_WITH_VALUE)
    for letter in ("-w", "--write-out", "--endpoints"):
        if session.given.has(letter):
            given.values.setdefault(letter, session.given.all(letter))
    return _etcdctl(session, plane, given)


def _etcdctl(session: Session, plane: ControlPlane, given: Options) -> Exit:
    match given.words:
        case ["member", "list"]:
            return Exit(0, _members(plane, given.get("-w", "--write-out")))
        case ["member", "remove", member_id]:
            if not session.call.world.control_planes.remove_member(plane, member_id):
                raise Failed(
                    f"Error: bad member ID arg, expecting ID in Hex\ncommand terminated with exit code {128}", 128
                )
            return Exit(0, f"Member {member_id} removed from cluster {_cluster_id(plane)}\n")
        case ["endpoint", "health"] if given.has("--cluster"):
            return _health(plane)
        case ["endpoint", "health"]:
            return Exit(0, "127.0.0.1:2379 is healthy: successfully committed proposal: took = 2.1ms\n")
    raise Failed("Error: unknown command for etcdctl\ncommand terminated with exit code 1")


def _cluster_id(plane: ControlPlane) -> str:
    return f"{abs(hash(plane.address)) % 16**16:016x}"


def _health(plane: ControlPlane) -> Exit:
    """Return what ``endpoint health --cluster -w json`` prints: every member, and an error if one of them does not answer."""
    listed = [
        {"endpoint": f"https://{one.machine.addresses[0]}:2379", "health": one.alive, "took": "2.1ms"}
        for one in plane.members.values()
    ]
    if all(one["health"] for one in listed):
        return Exit(0, json.dumps(listed) + "\n")
    return Exit(1, json.dumps(listed) + "\n", "Error: unhealthy cluster\ncommand terminated with exit code 1\n")


def _members(plane: ControlPlane, form: str) -> str:
    rows = [
        (m.member_id, m.node_name, f"https://{m.machine.addresses[0]}:2380", f"https://{m.machine.addresses[0]}:2379")
        for m in plane.members.values()
    ]
    if form == "json":
        listed = [
            {"ID": int(number, 16), "name": name, "peerURLs": [peer], "clientURLs": [client]}
            for number, name, peer, client in rows
        ]
        return json.dumps({"header": {}, "members": listed}) + "\n"
    return "".join(f"{number}, started, {name}, {peer}, {client}, false\n" for number, name, peer, client in rows)
