"""The Pod Security Standards of Kubernetes 1.34: which fields of a pod each level forbids.

The checks, their names, levels and overrides are those of the module k8s.io/pod-security-admission v0.34 (``policy/check_*.go``),
in its newest version of each; a test runs that module's own examples. The levels are cumulative. Only what the API server
would accept is judged: a field of a wrong type is refused there.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kubevnfm_csar.pod_templates import POD_TEMPLATES

from kubevnfm_infra_k8s.domain.objects import Body, annotations_of, field_at, group_of

Violation = tuple[str, str]
"""The field's path in the pod, and what it has."""


class Level(StrEnum):
    """A level of the Pod Security Standards."""

    PRIVILEGED = "privileged"
    """Nothing is forbidden."""
    BASELINE = "baseline"
    """Known ways out of a container are forbidden."""
    RESTRICTED = "restricted"
    """Fields that harden a pod are required too."""


@dataclass(frozen=True)
class _Check:
    name: str
    level: Level
    violations: Callable[[Body], Iterator[Violation]]
    overrides: str = ""
    """The check of a lower level that this one includes."""
    not_windows: bool = False
    """Whether pods of Windows (``spec.os.name``) are exempt: the API server refuses the field for them."""


def pod_violations(api_version: str, kind: str, body: Body, level: Level) -> Iterator[tuple[str, str, str]]:
    """Yield (check, path of the field in the object, what it has) of each violation of the level by the object's pods."""
    path = POD_TEMPLATES.get((group_of(api_version), kind))
    pod = field_at(body, *path) if path is not None else None
    if path is None or not isinstance(pod, Mapping):
        return
    is_windows = field_at(pod, "spec", "os", "name") == "windows"
    for check in _CHECKS_OF[level]:
        if not (check.not_windows and is_windows):
            for where, found in check.violations(pod):
                yield check.name, ".".join((*path, where)), found


# --- reading a pod ----------------------------------------------------------------------------------------------------


def _items(value: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list with their positions."""
    for number, each in enumerate(value if isinstance(value, list) else ()):
        if isinstance(each, Mapping):
            yield number, each


def _containers(pod: Body) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each container with its path: those that initialize, those that run, and those of a debugger."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        for number, each in _items(field_at(pod, "spec", name)):
            yield f"spec.{name}[{number}]", each


def _contexts(pod: Body, *path: str) -> Iterator[tuple[str, Any]]:
    """Yield the field of the pod's security context, then that of each container's, with its path; None if it is missing."""
    where = ".".join(("securityContext", *path))
    yield f"spec.{where}", field_at(pod, "spec", "securityContext", *path)
    for place, container in _containers(pod):
        yield f"{place}.{where}", field_at(container, "securityContext", *path)


def _own_contexts(pod: Body, *path: str) -> Iterator[tuple[str, Any]]:
    """Yield the field of each container's security context with its path; None if it is missing."""
    where = ".".join(("securityContext", *path))
    for place, container in _containers(pod):
        yield f"{place}.{where}", field_at(container, "securityContext", *path)


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _quoted(value: Any) -> str:
    """Return a value as findings show it: a text as it is, because escapes would hide a secret from its mask."""
    return f"'{value}'" if isinstance(value, str) else repr(value)


def _is_one(value: Any, allowed: frozenset[str]) -> bool:
    return isinstance(value, str) and value in allowed


# --- baseline ---------------------------------------------------------------------------------------------------------

_APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
_PROFILES: Final = frozenset({"RuntimeDefault", "Localhost"})
_CAPABILITIES: Final = frozenset(
    """
    AUDIT_WRITE CHOWN DAC_OVERRIDE FOWNER FSETID KILL MKNOD NET_BIND_SERVICE SETFCAP SETGID SETPCAP SETUID SYS_CHROOT
    """.split()  # noqa: SIM905 - a list of names is read as a text
)
_SELINUX_TYPES: Final = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_SYSCTLS: Final = frozenset(
    """
    kernel.shm_rmid_forced net.ipv4.ip_local_port_range net.ipv4.ip_local_reserved_ports
    net.ipv4.ip_unprivileged_port_start net.ipv4.ping_group_range net.ipv4.tcp_fin_timeout net.ipv4.tcp_keepalive_intvl
    net.ipv4.tcp_keepalive_probes net.ipv4.tcp_keepalive_time net.ipv4.tcp_rmem net.ipv4.tcp_syncookies net.ipv4.tcp_wmem
    """.split()  # noqa: SIM905 - a list of names is read as a text
)
_HANDLERS: Final = (
    ("livenessProbe",),
    ("readinessProbe",),
    ("startupProbe",),
    ("lifecycle", "postStart"),
    ("lifecycle", "preStop"),
)


def _apparmor(pod: Body) -> Iterator[Violation]:
    for where, kind in _contexts(pod, "appArmorProfile", "type"):
        if kind is not None and not _is_one(kind, _PROFILES):
            yield where, _quoted(kind)
    annotations = annotations_of(pod)
    for name, profile in annotations.items() if isinstance(annotations, Mapping) else ():
        if str(name).startswith(_APPARMOR_ANNOTATION):
            text = str(profile or "")
            if text and text != "runtime/default" and not text.startswith("localhost/"):
                yield f"metadata.annotations[{name}]", _quoted(text)


def _added(pod: Body, allowed: frozenset[str]) -> Iterator[Violation]:
    for where, added in _own_contexts(pod, "capabilities", "add"):
        if found := [str(each) for each in _list(added) if not _is_one(each, allowed)]:
            yield where, ", ".join(sorted(found))


def _capabilities_baseline(pod: Body) -> Iterator[Violation]:
    yield from _added(pod, _CAPABILITIES)


def _host_namespaces(pod: Body) -> Iterator[Violation]:
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if field_at(pod, "spec", name):
            yield f"spec.{name}", "true"


def _host_path_volumes(pod: Body) -> Iterator[Violation]:
    for number, volume in _items(field_at(pod, "spec", "volumes")):
        if volume.get("hostPath") is not None:
            yield f"spec.volumes[{number}].hostPath", str(field_at(volume, "hostPath", "path") or "")


def _host_ports(pod: Body) -> Iterator[Violation]:
    for place, container in _containers(pod):
        for number, port in _items(container.get("ports")):
            if port.get("hostPort"):
                yield f"{place}.ports[{number}].hostPort", str(port["hostPort"])


def _host_probes(pod: Body) -> Iterator[Violation]:
    for place, container in _containers(pod):
        for path in _HANDLERS:
            for action in ("httpGet", "tcpSocket"):
                if host := field_at(container, *path, action, "host"):
                    yield ".".join((place, *path, action, "host")), _quoted(host)


def _privileged(pod: Body) -> Iterator[Violation]:
    yield from ((where, "true") for where, given in _own_contexts(pod, "privileged") if given)


def _proc_mount(pod: Body) -> Iterator[Violation]:
    for where, kind in _own_contexts(pod, "procMount"):
        if kind is not None and kind != "Default":
            yield where, _quoted(kind)


def _selinux(pod: Body) -> Iterator[Violation]:
    for where, options in _contexts(pod, "seLinuxOptions"):
        kind = field_at(options, "type")
        if kind is not None and not _is_one(kind, _SELINUX_TYPES):
            yield f"{where}.type", _quoted(kind)
        for name in ("user", "role"):
            if given := field_at(options, name):
                yield f"{where}.{name}", _quoted(given)


def _seccomp_baseline(pod: Body) -> Iterator[Violation]:
    for where, kind in _contexts(pod, "seccompProfile", "type"):
        if kind is not None and not _is_one(kind, _PROFILES):
            yield where, _quoted(kind)


def _sysctls(pod: Body) -> Iterator[Violation]:
    for number, sysctl in _items(field_at(pod, "spec", "securityContext", "sysctls")):
        if not _is_one(sysctl.get("name"), _SYSCTLS):
            yield f"spec.securityContext.sysctls[{number}]", str(sysctl.get("name"))


def _windows_host_process(pod: Body) -> Iterator[Violation]:
    found = _contexts(pod, "windowsOptions", "hostProcess")
    yield from ((where, "true") for where, given in found if given)


# --- restricted -------------------------------------------------------------------------------------------------------

_VOLUMES: Final = frozenset(
    "configMap csi downwardAPI emptyDir ephemeral image persistentVolumeClaim projected secret".split()  # noqa: SIM905
)


def _allow_privilege_escalation(pod: Body) -> Iterator[Violation]:
    for where, given in _own_contexts(pod, "allowPrivilegeEscalation"):
        if given is not False:
            yield where, "false required"


def _capabilities_restricted(pod: Body) -> Iterator[Violation]:
    for where, dropped in _own_contexts(pod, "capabilities", "drop"):
        if "ALL" not in _list(dropped):
            yield where, "ALL required"
    yield from _added(pod, frozenset({"NET_BIND_SERVICE"}))


def _restricted_volumes(pod: Body) -> Iterator[Violation]:
    for number, volume in _items(field_at(pod, "spec", "volumes")):
        kinds = {str(kind) for kind, given in volume.items() if kind != "name" and given is not None}
        # One without a type is an emptyDir.
        if kinds and not kinds & _VOLUMES:
            yield f"spec.volumes[{number}]", ", ".join(sorted(kinds))


def _run_as_non_root(pod: Body) -> Iterator[Violation]:
    of_pod = field_at(pod, "spec", "securityContext", "runAsNonRoot")
    if of_pod not in (None, True):
        yield "spec.securityContext.runAsNonRoot", "true required"
    for where, given in _own_contexts(pod, "runAsNonRoot"):
        if given is not True and (given is not None or of_pod is not True):
            yield where, "true required"


def _run_as_user(pod: Body) -> Iterator[Violation]:
    for where, user in _contexts(pod, "runAsUser"):
        if user is not None and user == 0:
            yield where, "0"


def _seccomp_restricted(pod: Body) -> Iterator[Violation]:
    of_pod = field_at(pod, "spec", "securityContext", "seccompProfile", "type")
    yield from _seccomp_baseline(pod)
    for where, kind in _own_contexts(pod, "seccompProfile", "type"):
        if kind is None and not _is_one(of_pod, _PROFILES):
            yield where, "RuntimeDefault or Localhost required"


_CHECKS: Final = (
    _Check("appArmorProfile", Level.BASELINE, _apparmor),
    _Check("capabilities_baseline", Level.BASELINE, _capabilities_baseline),
    _Check("hostNamespaces", Level.BASELINE, _host_namespaces),
    _Check("hostPathVolumes", Level.BASELINE, _host_path_volumes),
    _Check("hostPorts", Level.BASELINE, _host_ports),
    _Check("hostProbesAndHostLifecycle", Level.BASELINE, _host_probes),
    _Check("privileged", Level.BASELINE, _privileged),
    _Check("procMount", Level.BASELINE, _proc_mount),
    _Check("seLinuxOptions", Level.BASELINE, _selinux),
    _Check("seccompProfile_baseline", Level.BASELINE, _seccomp_baseline),
    _Check("sysctls", Level.BASELINE, _sysctls),
    _Check("windowsHostProcess", Level.BASELINE, _windows_host_process),
    _Check("allowPrivilegeEscalation", Level.RESTRICTED, _allow_privilege_escalation, not_windows=True),
    _Check(
        "capabilities_restricted",
        Level.RESTRICTED,
        _capabilities_restricted,
        overrides="capabilities_baseline",
        not_windows=True,
    ),
    _Check("restrictedVolumes", Level.RESTRICTED, _restricted_volumes, overrides="hostPathVolumes"),
    _Check("runAsNonRoot", Level.RESTRICTED, _run_as_non_root),
    _Check("runAsUser", Level.RESTRICTED, _run_as_user),
    _Check(
        "seccompProfile_restricted",
        Level.RESTRICTED,
        _seccomp_restricted,
        overrides="seccompProfile_baseline",
        not_windows=True,
    ),
)

_OVERRIDDEN: Final = frozenset(check.overrides for check in _CHECKS)
_CHECKS_OF: Final[Mapping[Level, Sequence[_Check]]] = {
    Level.PRIVILEGED: (),
    Level.BASELINE: tuple(check for check in _CHECKS if check.level is Level.BASELINE),
    Level.RESTRICTED: tuple(check for check in _CHECKS if check.name not in _OVERRIDDEN),
}
POD_CHECKS: Final = frozenset(check.name for check in _CHECKS)
"""The names of all checks."""
OVERRIDING: Final[Mapping[str, str]] = {check.overrides: check.name for check in _CHECKS if check.overrides}
"""The check of the level ``restricted`` by the one that it includes."""
