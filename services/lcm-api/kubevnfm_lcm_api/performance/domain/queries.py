"""The expressions of PromQL that measure a metric, and what their answers mean. Pure.

Each has the labels by which its values are assigned to pods, machines or connection points: one expression measures many of them.
The series are those of cAdvisor, the kubelet and kube-state-metrics for pods, and those of node_exporter for machines. Usage of
computing is in percent, as in ETSI GS NFV-IFA 027; traffic is counted for each period.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from kubevnfm_lcm_api.performance.domain.measured_objects import Measured, Pod, Point, Vnfc
from kubevnfm_lcm_api.performance.domain.metrics import OF_POINTS, Wanted

T = TypeVar("T")
K = TypeVar("K")
Labels = Mapping[str, str]
Target = tuple[str, str | None]
"""A VNF instance, and the id of its part; None: of the instance as a whole."""

_TOGETHER: Final = 200
"""Names in one expression: it stays far below the 2 MB that proxies in front of a Prometheus let through."""
_BY_POD: Final = "by (namespace,pod)"
_ON_POD: Final = "on (namespace,pod)"
_NO_DISK: Final = "tmpfs|ramfs|overlay|squashfs|iso9660|nsfs|devtmpfs"
_PORT: Final = "(:[0-9]+)?"


@dataclass(frozen=True)
class Span:
    """The times of a measurement, in whole seconds."""

    period_s: int
    scrape_s: int

    @property
    def window_s(self) -> int:
        """The time that a value is made from: a rate needs two scrapes."""
        return max(self.period_s, 2 * self.scrape_s)

    @property
    def part_s(self) -> int:
        """The time of the parts of which the peak is one."""
        return min(self.window_s, 2 * self.scrape_s)

    @property
    def step_s(self) -> int:
        """The pause between two parts."""
        return min(self.scrape_s, self.window_s)


@dataclass(frozen=True)
class Question:
    """One expression, and whose values its answer has."""

    text: str
    target: Callable[[Labels], Target | None]
    """Returns whose series one with these labels is; None: it was not asked for."""
    is_sum: bool = False
    """Whether the value of a target is the sum of its series, as of an interface in several pods; otherwise any has it."""


def questions(wanted: Wanted, measured: Measured, span: Span, sub_ids: Sequence[str] = ()) -> Iterator[Question]:
    """Yield the expressions that measure a metric; ``sub_ids``: of these parts alone, if there are any."""
    chosen = frozenset(sub_ids)
    of_instance = [each for each in measured.vnfcs if wanted.instance_id in {None, each.instance_id}]
    if wanted.metric.quantity in OF_POINTS:
        points = [each for each in measured.points if wanted.instance_id in {None, each.instance_id}]
        yield from _of_points(wanted, [each for each in points if not chosen or each.id in chosen], span)
        yield from _of_interfaces(wanted, [each for each in of_instance if each.pod is not None], span, chosen)
        return
    vnfcs = [each for each in of_instance if not chosen or each.id in chosen]
    yield from _of_pods(wanted, [each for each in vnfcs if each.pod is not None], span)
    yield from _of_machines(wanted, [each for each in vnfcs if each.addresses], span)


def _of_pods(wanted: Wanted, vnfcs: Sequence[Vnfc], span: Span) -> Iterator[Question]:
    for some in _parts(vnfcs):
        found: dict[Pod | None, Target] = {each.pod: (each.instance_id, each.id) for each in some}
        yield Question(_pod_usage(wanted, _pods(some), span), _found_by(_pod_of, found))


def _of_machines(wanted: Wanted, vnfcs: Sequence[Vnfc], span: Span) -> Iterator[Question]:
    for some in _parts(vnfcs):
        found: dict[str, Target] = {host: (each.instance_id, each.id) for each in some for host in each.addresses}
        one_of = _one_of(f"[{host}]" if ":" in host else host for host in found)
        text = _machine_usage(wanted, f"instance=~{_text(f'({one_of}){_PORT}')}", span)
        yield Question(text, _found_by(_host_of, found))


def _of_points(wanted: Wanted, points: Sequence[Point], span: Span) -> Iterator[Question]:
    for some in _parts(points):
        found: dict[str, Target] = {each.mac_address: (each.instance_id, each.id) for each in some}
        series = f'node_network_{wanted.metric.quantity}_total{{device!="lo"}}'
        rate = f"max by (instance,device) (rate({series}[{span.window_s}s]))"
        card = f"max by (instance,device,address) (node_network_info{{address=~{_text(_one_of(found))}}})"
        text = f"{span.period_s} * sum by (address) ({rate} * on (instance,device) group_right() {card})"
        yield Question(text, _found_by(lambda labels: labels.get("address", ""), found))


def _of_interfaces(wanted: Wanted, vnfcs: Sequence[Vnfc], span: Span, names: frozenset[str]) -> Iterator[Question]:
    for some in _parts(vnfcs):
        instances = {each.pod: each.instance_id for each in some}
        only = f",interface=~{_text(_one_of(sorted(names)))}" if names else ""
        rate = f"rate(container_network_{wanted.metric.quantity}_total{{{_pods(some)}{only}}}[{span.window_s}s])"

        def target(labels: Labels, instances: Mapping[Pod | None, str] = instances) -> Target | None:
            instance_id, name = instances.get(_pod_of(labels)), labels.get("interface", "")
            return (instance_id, name) if instance_id is not None and name else None

        yield Question(f"{span.period_s} * sum by (namespace,pod,interface) ({rate})", target, is_sum=True)


def _found_by(key: Callable[[Labels], K], targets: Mapping[K, Target]) -> Callable[[Labels], Target | None]:
    return lambda labels: targets.get(key(labels))


def _pod_of(labels: Labels) -> Pod | None:
    return Pod(labels.get("namespace", ""), labels.get("pod", ""))


# --- expressions --------------------------------------------------------------------------------------------------------


def _pod_usage(wanted: Wanted, pods: str, span: Span) -> str:
    own = f'{pods},container!="",container!="POD"'
    if wanted.metric.quantity == "cpu":
        return _cpu(wanted, span, lambda window_s: _pod_cpu(pods, own, window_s))
    if wanted.metric.quantity == "memory":
        used = _either("pod_memory_working_set_bytes", "container_memory_working_set_bytes", pods, own)
        nodes = 'max by (node) (kube_node_status_capacity{resource="memory"})'
        node = f"max {_BY_POD} (kube_pod_info{{{pods}}} * on (node) group_left() {nodes})"
        value = f"100 * ({used}) / {_ON_POD} ({_limit(pods, 'memory')} or {_ON_POD} {node})"
    else:
        limit = f"(container_fs_limit_bytes{{{pods}}} > 0)"
        value = f"100 * max {_BY_POD} (container_fs_usage_bytes{{{pods}}} / {limit})"
    return _over_time(value, wanted, span)


def _pod_cpu(pods: str, own: str, window_s: int) -> str:
    used = (
        f"(sum {_BY_POD} (rate(pod_cpu_usage_seconds_total{{{pods}}}[{window_s}s])) or "
        f"sum {_BY_POD} (rate(container_cpu_usage_seconds_total{{{own}}}[{window_s}s])))"
    )
    # Without a limit the usage is that of one CPU.
    return f"100 * {used} / {_ON_POD} ({_limit(pods, 'cpu')} or {_ON_POD} (0 * {used} + 1))"


def _limit(pods: str, resource: str) -> str:
    return f'sum {_BY_POD} (kube_pod_container_resource_limits{{{pods},resource="{resource}"}})'


def _either(of_pod: str, of_container: str, pods: str, own: str) -> str:
    return f"sum {_BY_POD} ({of_pod}{{{pods}}}) or sum {_BY_POD} ({of_container}{{{own}}})"


def _machine_usage(wanted: Wanted, which: str, span: Span) -> str:
    if wanted.metric.quantity == "cpu":
        idle = f'node_cpu_seconds_total{{mode="idle",{which}}}'
        return _cpu(wanted, span, lambda window_s: f"100 * (1 - avg by (instance) (rate({idle}[{window_s}s])))")
    if wanted.metric.quantity == "memory":
        free, size = (
            f"max by (instance) (node_memory_{each}_bytes{{{which}}})" for each in ("MemAvailable", "MemTotal")
        )
        return _over_time(f"100 * (1 - {free} / {size})", wanted, span)
    disks = f'{{{which},fstype!~"{_NO_DISK}"}}'
    free, size = f"node_filesystem_avail_bytes{disks}", f"(node_filesystem_size_bytes{disks} > 0)"
    return _over_time(f"100 * max by (instance) (1 - {free} / {size})", wanted, span)


def _cpu(wanted: Wanted, span: Span, usage: Callable[[int], str]) -> str:
    if not wanted.metric.is_peak:
        return usage(span.window_s)
    return f"max_over_time(({usage(span.part_s)})[{span.window_s}s:{span.step_s}s])"


def _over_time(value: str, wanted: Wanted, span: Span) -> str:
    function = "max_over_time" if wanted.metric.is_peak else "avg_over_time"
    return f"{function}(({value})[{span.window_s}s:{span.step_s}s])"


# --- texts --------------------------------------------------------------------------------------------------------------


def _pods(vnfcs: Sequence[Vnfc]) -> str:
    pods = [each.pod for each in vnfcs if each.pod is not None]
    namespaces, names = sorted({each.namespace for each in pods}), sorted({each.name for each in pods})
    return f"namespace=~{_text(_one_of(namespaces))},pod=~{_text(_one_of(names))}"


def _one_of(names: Iterable[str]) -> str:
    """Return the regular expression of RE2 that matches these texts alone."""
    return "|".join(re.escape(each) for each in names)


def _text(value: str) -> str:
    """Return a string literal of PromQL: names come from clusters and requests."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _host_of(labels: Labels) -> str:
    """Return the address in the label of a target: ``10.0.0.5:9100``, ``[fd00::1]:9100``, or without a port."""
    instance = labels.get("instance", "")
    if instance.startswith("["):
        return instance[1:].partition("]")[0]
    return instance.partition(":")[0] if instance.count(":") == 1 else instance


def _parts(things: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(things), _TOGETHER):
        yield things[begin : begin + _TOGETHER]


# --- values -------------------------------------------------------------------------------------------------------------


def of_whole(values: Sequence[float], *, is_peak: bool) -> float:
    """Return the value of a VNF instance from those of its VNFCs."""
    return max(values) if is_peak else math.fsum(values) / len(values)
