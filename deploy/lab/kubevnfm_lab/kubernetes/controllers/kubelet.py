"""The kubelets of all nodes: pull images, run pods and end them, and keep the nodes ready."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Final

from kubevnfm_lab.kubernetes.controllers.plane import ControlPlane, Keys, itself
from kubevnfm_lab.kubernetes.objects import (
    Key,
    Obj,
    condition_is_true,
    controller_of,
    is_terminating,
    key_of,
    now,
    value_at,
    with_condition,
)
from kubevnfm_lab.kubernetes.store import Change
from kubevnfm_lab.ports import ConnectionDropped, FaultInjected, Faults, Ledger

_COMPONENT: Final = "kubelet"
_FIRST_BACK_OFF_S: Final = 0.5
"""The real kubelet waits 10 s at first and 300 s at most; the lab's users should not have to."""
_LONGEST_BACK_OFF_S: Final = 10.0
_EXIT_CODE: Final = re.compile(r"\bexit\s+(\d+)")


class ImageUnavailable(Exception):
    """An image cannot be pulled."""


class Kubelet:
    """Runs every scheduled pod of the cluster."""

    def __init__(self, plane: ControlPlane, *, pod_cidr: str, faults: Faults, ledger: Ledger) -> None:
        self._plane, self._faults, self._ledger = plane, faults, ledger
        self._addresses: Iterator[IPv4Address] = IPv4Network(pod_cidr).hosts()
        self._pod_cidr = pod_cidr
        self._running: dict[Key, tuple[str, asyncio.Task[None]]] = {}
        """The task that started each pod, by pod uid; kept until the pod is gone, so that no pod starts twice."""
        self._ending: dict[Key, str] = {}

    def watched(self) -> Mapping[str, Keys]:
        """See `Controller`."""
        return {"pods": itself, "nodes": self._pods_of_node}

    def _pods_of_node(self, change: Change) -> Iterable[Key]:
        name = change.key.name
        # A Node changes with every report of its kubelet; only pods that it has to end depend on that.
        return [
            key_of(pod)
            for pod in self._plane.store.list("pods")
            if value_at(pod, "spec", "nodeName") == name and (change.kind == "DELETED" or is_terminating(pod))
        ]

    def reconcile(self, key: Key) -> None:
        """See `Controller`."""
        pod = self._plane.store.get("pods", key)
        uid = pod["metadata"]["uid"] if pod is not None else ""
        # A pod of the same name but another uid: its predecessor's task must not touch it.
        if key in self._running and self._running[key][0] != uid:
            self._running.pop(key)[1].cancel()
        if pod is None:
            self._ending.pop(key, None)
            return
        node = value_at(pod, "spec", "nodeName")
        if not node:
            return
        # No kubelet is left to confirm the end of its pods, so they are removed at once.
        found = self._plane.store.get("nodes", Key("", node))
        if found is None:
            self._plane.delete("pods", pod, grace_s=0)
        elif is_terminating(pod):
            # A node that stopped reporting does not confirm the end of a pod either: it stays Terminating.
            if not condition_is_true(found, "Ready"):
                return
            # Each terminating pod gets one timer, however many changes follow.
            if self._ending.get(key) != uid:
                self._ending[key] = uid
                self._plane.later(self._plane.delay_s, lambda: self._end(pod))
        elif key not in self._running or self._image_was_changed(pod):
            self._start(pod)

    def _end(self, pod: Obj) -> None:
        uid, task = self._running.get(key_of(pod), ("", None))
        if task is not None and uid == pod["metadata"]["uid"]:
            task.cancel()
        self._plane.delete("pods", pod, grace_s=0)

    def _image_was_changed(self, pod: Obj) -> bool:
        """Return whether a running container has another image than its spec now asks for."""
        wanted = {container["name"]: container["image"] for container in pod["spec"]["containers"]}
        statuses = value_at(pod, "status", "containerStatuses") or []
        busy = not self._running[key_of(pod)][1].done()
        return not busy and any(s["image"] != wanted.get(s["name"], s["image"]) for s in statuses)

    def _start(self, pod: Obj) -> None:
        key, uid = key_of(pod), pod["metadata"]["uid"]
        self._running[key] = (uid, self._plane.spawn(self._run(key, uid)))

    async def _run(self, key: Key, uid: str) -> None:
        """Bring the pod to Running, retrying its images as long as needed, and a job's pod to its end."""
        self._set_waiting(key, reason="ContainerCreating", message="")
        await asyncio.sleep(self._plane.delay_s)
        back_off_s = _FIRST_BACK_OFF_S
        while (trouble := await self._pull(key)) is not None:
            image, message = trouble
            self._report_failed_pull(key, image, message)
            # The task sleeps between tries, like the kubelet's back-off; deleting the pod cancels it.
            await asyncio.sleep(back_off_s)
            back_off_s = min(back_off_s * 2, _LONGEST_BACK_OFF_S)
        while (image_and_why := await self._misconfigured(key)) is not None:
            image, message = image_and_why
            self._set_waiting(key, reason="CreateContainerConfigError", message=message, image=image)
            await asyncio.sleep(_FIRST_BACK_OFF_S)
        back_off_s, restarts = _FIRST_BACK_OFF_S, 0
        while (last_words := await self._crash(key)) is not None:
            self._set_crashed(key, last_words, restarts=restarts, back_off_s=back_off_s)
            await asyncio.sleep(back_off_s)
            back_off_s, restarts = min(back_off_s * 2, _LONGEST_BACK_OFF_S), restarts + 1
        # The pod may have been deleted, and its name reused, while images were pulled.
        pod = self._plane.store.get("pods", key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        self._set_running(key)
        owner = controller_of(pod)
        # Only a Job's pods end by themselves; other containers are assumed to run for ever.
        if owner is not None and owner["kind"] == "Job":
            await asyncio.sleep(self._plane.delay_s)
            self._set_finished(key, _exit_code(pod))

    async def _pull(self, key: Key) -> tuple[str, str] | None:
        """Pull all images of the pod; return the first that cannot be pulled, and why."""
        pod = self._plane.store.get("pods", key)
        if pod is None:
            return None
        node = value_at(pod, "spec", "nodeName")
        for container in [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]:
            image = container["image"]
            self._ledger.count("program", f"image {image}", node=node)
            try:
                await self._faults.check("program", f"image {image}", node=node)
                # Image names by which tests and demos ask for a failing pull.
                if image.endswith(":missing") or "does-not-exist" in image:
                    raise ImageUnavailable(f"{image}: not found")
            except (FaultInjected, ConnectionDropped, ImageUnavailable) as error:
                return image, str(error)
        return None

    async def _misconfigured(self, key: Key) -> tuple[str, str] | None:
        """Return the image of the first container whose configuration is not complete, and why.

        A kubelet that has just started refuses all pods so until it has read the Services.
        """
        return await self._fault_of_container(key, "config")

    async def _crash(self, key: Key) -> str | None:
        """Return what the first container that crashes wrote at last; None if all of them run."""
        crashed = await self._fault_of_container(key, "container")
        return None if crashed is None else crashed[1]

    async def _fault_of_container(self, key: Key, kind: str) -> tuple[str, str] | None:
        pod = self._plane.store.get("pods", key)
        for container in pod["spec"]["containers"] if pod is not None else ():
            image = container["image"]
            try:
                await self._faults.check("program", f"{kind} {image}", node=value_at(pod or {}, "spec", "nodeName"))
            except (FaultInjected, ConnectionDropped) as error:
                return image, str(error)
        return None

    def _set_crashed(self, key: Key, last_words: str, *, restarts: int, back_off_s: float) -> None:
        def write(pod: Obj) -> None:
            status = pod.setdefault("status", {})
            self._place(pod, status, address=True)
            status["phase"] = "Running"
            ended = {"exitCode": 1, "reason": "Error", "message": last_words, "startedAt": now(), "finishedAt": now()}
            statuses = []
            for container in pod["spec"]["containers"]:
                back_off = f"back-off {back_off_s:g}s restarting failed container={container['name']} pod={key.name}_{key.namespace}"
                state = {"waiting": {"reason": "CrashLoopBackOff", "message": back_off}}
                crashed = {"restartCount": restarts, "lastState": {"terminated": ended}}
                statuses.append(_container_status(container, state, ready=False) | crashed)
            status["containerStatuses"] = statuses
            _set_ready(status, ready=False, reason="ContainersNotReady", message="containers with unready status")

        self._plane.registry.change("pods", key, write)

    def _report_failed_pull(self, key: Key, image: str, message: str) -> None:
        detail = f'Failed to pull image "{image}": rpc error: code = NotFound desc = {message}'
        pod = self._set_waiting(key, reason="ErrImagePull", message=detail, image=image)
        if pod is None:
            return
        record = self._plane.record
        record(pod, "Warning", "Failed", detail, component=_COMPONENT)
        record(pod, "Warning", "Failed", "Error: ErrImagePull", component=_COMPONENT)
        back_off = f'Back-off pulling image "{image}"'
        self._set_waiting(key, reason="ImagePullBackOff", message=back_off, image=image)
        record(pod, "Normal", "BackOff", back_off, component=_COMPONENT)
        record(pod, "Warning", "Failed", "Error: ImagePullBackOff", component=_COMPONENT)

    def _set_waiting(self, key: Key, *, reason: str, message: str, image: str = "") -> Obj | None:
        def write(pod: Obj) -> None:
            status = pod.setdefault("status", {})
            self._place(pod, status, address=False)
            waiting = {"reason": reason, "message": message} if message else {"reason": reason}
            statuses = []
            for container in pod["spec"]["containers"]:
                is_this = not image or container["image"] == image
                state = {"waiting": waiting if is_this else {"reason": "ContainerCreating"}}
                statuses.append(_container_status(container, state, ready=False))
            status["containerStatuses"] = statuses
            status["phase"] = "Pending"
            names = ", ".join(container["name"] for container in pod["spec"]["containers"])
            _set_ready(
                status, ready=False, reason="ContainersNotReady", message=f"containers with unready status: [{names}]"
            )

        return self._plane.registry.change("pods", key, write)

    def _set_running(self, key: Key) -> None:
        def write(pod: Obj) -> None:
            status = pod.setdefault("status", {})
            self._place(pod, status, address=True)
            status["phase"] = "Running"
            running = {"running": {"startedAt": now()}}
            status["containerStatuses"] = [
                _container_status(container, running, ready=True) for container in pod["spec"]["containers"]
            ]
            done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now(), "finishedAt": now()}}
            if pod["spec"].get("initContainers"):
                status["initContainerStatuses"] = [
                    _container_status(container, done, ready=True) for container in pod["spec"]["initContainers"]
                ]
            _set_ready(status, ready=True, reason="", message="")

        pod = self._plane.registry.change("pods", key, write)
        for container in pod["spec"]["containers"] if pod is not None else ():
            message = f"Started container {container['name']}"
            self._plane.record(pod or {}, "Normal", "Started", message, component=_COMPONENT)

    def _set_finished(self, key: Key, exit_code: int) -> None:
        def write(pod: Obj) -> None:
            status = pod["status"]
            status["phase"] = "Succeeded" if exit_code == 0 else "Failed"
            state = {
                "terminated": {
                    "exitCode": exit_code,
                    "reason": "Completed" if exit_code == 0 else "Error",
                    "startedAt": now(),
                    "finishedAt": now(),
                }
            }
            status["containerStatuses"] = [
                _container_status(container, state, ready=False) for container in pod["spec"]["containers"]
            ]
            reason = "PodCompleted" if exit_code == 0 else "PodFailed"
            _set_ready(status, ready=False, reason=reason, message="")

        self._plane.registry.change("pods", key, write)

    def _place(self, pod: Obj, status: Obj, *, address: bool) -> None:
        """Write the pod's host address, and its own address once it runs."""
        node = self._plane.store.get("nodes", Key("", pod["spec"]["nodeName"]))
        addresses = value_at(node, "status", "addresses") or []
        host = next((a["address"] for a in addresses if a["type"] == "InternalIP"), "")
        status |= {"hostIP": host, "hostIPs": [{"ip": host}], "qosClass": status.get("qosClass") or "BestEffort"}
        status.setdefault("startTime", now())
        if address and not status.get("podIP"):
            ip = host if pod["spec"].get("hostNetwork") else self._next_address()
            status |= {"podIP": ip, "podIPs": [{"ip": ip}]}

    def _next_address(self) -> str:
        address = next(self._addresses, None)
        if address is None:  # All addresses were used once; the first pods are long gone, so start over.
            self._addresses = IPv4Network(self._pod_cidr).hosts()
            address = next(self._addresses)
        return str(address)


def _container_status(container: Obj, state: Obj, *, ready: bool) -> Obj:
    status: Obj = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": ready,
        "started": "running" in state,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
    if "waiting" not in state:
        digest = hashlib.sha256(container["image"].encode()).hexdigest()
        status |= {
            "imageID": f"{container['image'].partition('@')[0]}@sha256:{digest}",
            "containerID": f"containerd://{digest}",
        }
    return status


def _set_ready(status: Obj, *, ready: bool, reason: str, message: str) -> None:
    conditions = status.get("conditions") or []
    finished = reason == "PodCompleted"
    conditions = with_condition(conditions, "PodReadyToStartContainers", status=ready, reason="")
    conditions = with_condition(conditions, "Initialized", status=True, reason="PodCompleted" if finished else "")
    for kind in ("ContainersReady", "Ready"):
        conditions = with_condition(conditions, kind, status=ready, reason=reason, message=message)
    status["conditions"] = conditions


def _exit_code(pod: Obj) -> int:
    """Return how a job's pod ends: by ``false`` or ``exit <n>`` in its command, otherwise with 0."""
    for container in pod["spec"]["containers"]:
        words = [str(word) for word in [*(container.get("command") or []), *(container.get("args") or [])]]
        if words and words[0].rpartition("/")[2] == "false":
            return 1
        if found := _EXIT_CODE.search(" ".join(words)):
            return int(found[1])
    return 0
