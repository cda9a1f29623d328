"""A CNF whose package orders its artifacts (multicloud.md chapters 4, 5): the order of a request, its namespace and its values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubevnfm_csar.artifact_order import LARGEST, ORDER, ArtifactOrder, find_order, limit_s
from kubevnfm_csar.claimed_volumes import check_claims
from kubevnfm_csar.field_paths import without_fields
from kubevnfm_csar.hooks import DELETIONS
from kubevnfm_csar.manifest_values import RESERVED, Hidden, check_values, merged
from kubevnfm_csar.manifest_values import VALUES as VALUES_FIELD
from kubevnfm_csar.order_graph import OrderedDocument
from kubevnfm_csar.order_reader import read_order
from kubevnfm_csar.ordered_manifests import all_values, read_artifacts
from kubevnfm_csar.placeholders import VARIABLES
from kubevnfm_csar.unused_values import unused_values
from kubevnfm_csar.values_schema import LARGEST as LARGEST_SCHEMA
from kubevnfm_csar.values_schema import schema_path
from kubevnfm_events.objects import ObjectsOrder
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_kit.kubernetes_names import (
    KUBERNETES_VERSION_RULE,
    RELEASE_NAME_RULE,
    is_kubernetes_version,
    is_label,
    is_of_kubernetes,
    is_release_name,
)
from kubevnfm_kit.merge_patch import merge_patch
from kubevnfm_kit.request_warnings import RequestWarning
from kubevnfm_secrets import SECRET_NAMES, KeyRing, Secret, map_secrets

from kubevnfm_lcm_api.lifecycle.containers.manifests import package_texts
from kubevnfm_lcm_api.lifecycle.containers.profiles import check_profiles
from kubevnfm_lcm_api.lifecycle.core.faults import Faults
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_lcm_api.lifecycle.core.request_parameters import (
    CHART,
    COMPUTE_PROFILES,
    DEF_FILES,
    KUBERNETES_VERSION,
    ORDER_ARTIFACT,
    OUTPUTS,
    RELEASE_NAME,
    RELEASES,
    VALUES,
    variables_in,
)

_OF_ORDERS: Final = frozenset({ORDER_ARTIFACT, VALUES, COMPUTE_PROFILES, OUTPUTS, RELEASE_NAME, KUBERNETES_VERSION})
"""The parameters that a package without an order has no use for."""
_NAMESPACE: Final = "additionalParams/namespace"
_MOST_OF_VALUES: Final = 2 * 2**20
"""Characters and members of all values of a CNF. Its document, with the next operation in it, has up to seven copies, and MongoDB takes 16 MiB."""
_USUAL_WAIT_S: Final = 500.0
"""The limit of infra-k8s for a wait that the order gives none (its setting ``ready_timeout_s``)."""
_LONGEST_END_S: Final = 86_400.0
"""The most time that the hooks of a deletion add to it: the longest timeout of one artifact."""


async def requested_order(
    packages: PackageCatalogue, package_id: str, files: frozenset[str], parameters: Mapping[str, Any]
) -> ArtifactOrder | None:
    """Return the order that a request asks for: of the file that it names, or of its package if it lists no manifests.

    None: the request lists manifests or names a chart, or the package has no order. Raises Unprocessable.
    """
    asked = parameters.get(ORDER_ARTIFACT)
    listed = next((name for name in (DEF_FILES, CHART, RELEASES) if name in parameters), None)
    if listed is not None:
        if asked is not None:
            raise Unprocessable(ORDER, f"not expected beside {listed}: leave one of them out")
        return None
    name = find_order(files, asked)
    if name is None:
        return None
    if variables_in(parameters) is not None:
        raise Unprocessable(VARIABLES, f"not expected for a package with an order artifact: give {VALUES_FIELD}")
    return await order_in(packages, package_id, name, files)


async def order_in(packages: PackageCatalogue, package_id: str, name: str, files: frozenset[str]) -> ArtifactOrder:
    """Return the content of an order artifact of a package. Raises Unprocessable."""
    raw = await packages.file(package_id, name, limit_bytes=LARGEST)
    if raw is None:
        raise Unprocessable(ORDER, f"{name}: a file of at most {LARGEST} bytes expected")
    path = schema_path(name)
    schema = await packages.file(package_id, path, limit_bytes=LARGEST_SCHEMA) if path in files else b""
    if schema is None:
        raise Unprocessable(ORDER, f"{path}: a file of at most {LARGEST_SCHEMA} bytes expected")
    texts = [each.decode(errors="replace") for each in (raw, schema)]
    return await asyncio.to_thread(read_order, name, texts[0], files, texts[1] if path in files else None)


def order_artifact_in(parameters: Mapping[str, Any]) -> str | None:
    """Return the order artifact in the stored additionalParams of an instance; None if its objects have no order.

    Manifests and charts have none: an earlier version has stored whatever a request had beside them.
    """
    return None if {DEF_FILES, CHART, RELEASES} & parameters.keys() else parameters.get(ORDER_ARTIFACT)


def release_name_in(parameters: Mapping[str, Any]) -> str | None:
    """Return the name of the release of an instance's charts; None for the usual one. Raises Unprocessable."""
    name = parameters.get(RELEASE_NAME)
    if name is not None and not (isinstance(name, str) and is_release_name(name)):
        raise Unprocessable(f"additionalParams/{RELEASE_NAME}", RELEASE_NAME_RULE)
    return name


def kubernetes_version_in(parameters: Mapping[str, Any]) -> str | None:
    """Return the version that the templates of an instance's charts see; None for that of its cluster. Raises Unprocessable."""
    version = parameters.get(KUBERNETES_VERSION)
    if version is not None and not (isinstance(version, str) and is_kubernetes_version(version)):
        raise Unprocessable(f"additionalParams/{KUBERNETES_VERSION}", KUBERNETES_VERSION_RULE)
    return version


def check_has_chart(artifacts: ArtifactOrder | None, parameters: Mapping[str, Any]) -> None:
    """Raise Unprocessable if a request gives a version of Kubernetes, and the order has no chart, which alone would see it."""
    if artifacts is not None and not artifacts.charts and parameters.get(KUBERNETES_VERSION) is not None:
        reason = "the order of the package has no chart, which alone would see it: leave it out"
        raise Unprocessable(f"additionalParams/{KUBERNETES_VERSION}", reason)


def ordered_namespace(parameters: Mapping[str, Any], instance_id: str) -> str:
    """Return the namespace of an instance whose package has an order (MC-028, MC-032). Raises Unprocessable."""
    values = check_values(parameters.get(VALUES, {}))
    _check_amount(values)
    asked, among_values = parameters.get("namespace"), values.get("namespace")
    if asked is not None and among_values is not None and asked != among_values:
        raise Unprocessable(_NAMESPACE, f"differs from {VALUES_FIELD}/namespace: leave one of them out")
    namespace = asked if asked is not None else among_values
    if namespace is None:
        return f"vnf-{instance_id[:8]}"
    if not isinstance(namespace, str) or not is_label(namespace):
        raise Unprocessable(_NAMESPACE, "1 to 63 small letters, digits and -, not first or last a -, expected")
    if is_of_kubernetes(namespace):
        raise Unprocessable(_NAMESPACE, "a namespace of Kubernetes itself (kube-*): name another one")
    return namespace


def values_of(parameters: Mapping[str, Any], record: InstanceRecord, order: ObjectsOrder) -> dict[str, Any]:
    """Return the values that additionalParams give, with those of the reserved names (MC-028)."""
    place, vim_id = record.internals.multicloud, order.vim.vim_id or ""
    owner, region = ("", vim_id) if place is None else place.key
    return {
        **parameters.get(VALUES, {}),
        "namespace": order.namespace,
        "vnf_id": record.vnf.id,
        "vnf_instance_name": record.vnf.vnf_instance_name or "",
        "cloud_owner": owner,
        "cloud_region": region,
        "cloud_region_id": vim_id if place is None else place.cloud_region_id,
        "csar_id": order.package.package_id,
    }


def changed_parameters(
    earlier: Mapping[str, Any], given: Mapping[str, Any], artifacts: ArtifactOrder | None, *, is_merge_patch: bool
) -> dict[str, Any]:
    """Return additionalParams after a change of package; ``artifacts``: the order of the new package, if it is used.

    ``is_merge_patch``: whether null among the values removes one.

    Raises Unprocessable for values that cannot be used.
    """
    before = order_artifact_in(earlier)
    if artifacts is None and (before is None or DEF_FILES in given):
        # A list of manifests takes the place of an order.
        left = _OF_ORDERS if DEF_FILES in given else frozenset[str]()
        return {**{name: value for name, value in earlier.items() if name not in left}, **given}
    # Without an order before, nothing has read or checked such a parameter.
    earlier = earlier if before is not None else {n: each for n, each in earlier.items() if n not in _OF_ORDERS}
    changed = merge_patch if is_merge_patch else merged
    values = changed(earlier.get(VALUES, {}), check_values(given.get(VALUES, {})))
    _check_amount(values)
    named = {} if artifacts is None else {ORDER_ARTIFACT: artifacts.name}
    found = {**earlier, **given, **named, VALUES: values}
    return {name: value for name, value in found.items() if name != DEF_FILES}


def _check_amount(values: Mapping[str, Any]) -> None:
    """Raise Unprocessable for values that are too many together: each change adds to those that a CNF has."""
    left, open_nodes = _MOST_OF_VALUES, [values]
    while open_nodes:
        node: Any = open_nodes.pop()
        left -= 1
        if isinstance(node, Mapping):
            left -= sum(map(len, node))
            open_nodes += node.values()
        elif isinstance(node, list | tuple):
            open_nodes += node
        elif isinstance(node, str):
            left -= len(node)
        elif isinstance(node, Secret):
            left -= node.characters
        if left < 0:
            reason = f"at most {_MOST_OF_VALUES} characters and members expected of all values of the VNF together"
            raise Unprocessable(VALUES_FIELD, reason)


@dataclass(frozen=True)
class CheckedObjects:
    """The objects of an order, with a keyed hash in the place of each secret value."""

    documents: Sequence[OrderedDocument]
    unused_values: tuple[RequestWarning, ...]
    """The warnings about values that name no variable."""

    @property
    def bodies(self) -> Sequence[Any]:
        """All of them."""
        return [each.body for each in self.documents]

    @property
    def written(self) -> Sequence[Any]:
        """Those that can be workloads, with an empty one in the place of each that is only read."""
        return [each.written_body for each in self.documents]

    @property
    def compared(self) -> Sequence[Any]:
        """All of them, without the fields that every apply leaves out."""
        return [
            without_fields(each.body, each.artifact.ignored) if isinstance(each.body, Mapping) else each.body
            for each in self.documents
        ]


async def check_artifacts(
    packages: PackageCatalogue,
    ring: KeyRing,
    artifacts: ArtifactOrder,
    wanted: ObjectsOrder,
    faults: Faults,
    *,
    given: Mapping[str, Any],
    claims_at: str | None = None,
) -> CheckedObjects | None:
    """Check the artifacts of an order, with the values for their variables, as far as that needs no cluster.

    ``given``: the values of the request that have to name variables; ``claims_at``: the attribute that is wrong if the artifacts do not go with the volumes; None: the request names these.
    All wrong places go to the faults, never with a value; None if no objects can be made.
    """
    assert wanted.namespace is not None
    if artifacts.schema is not None:
        described = await asyncio.to_thread(_described, artifacts, wanted.values)
        await faults.collected(packages.check_values(artifacts.schema, described))
    texts = await package_texts(packages, wanted.package.package_id, artifacts.files)
    # Whether a value is secret decides where it may be; what it is does not.
    values = await asyncio.to_thread(
        map_secrets, wanted.values, lambda secret: Hidden(ring.fingerprint(secret.reveal(ring)))
    )
    named: set[str] = set()
    reading = asyncio.to_thread(read_artifacts, artifacts, texts, values, namespace=wanted.namespace, named=named)
    documents = await faults.collected(reading)
    if documents is None:
        return None
    found = CheckedObjects(documents, tuple(await asyncio.to_thread(unused_values, artifacts, given, named)))
    if wanted.volumes:
        await faults.collected(asyncio.to_thread(check_claims, found.bodies, wanted, place=claims_at))
    # The workloads of charts are known to infra-k8s alone, which checks before it applies anything.
    if wanted.compute_profiles and not artifacts.charts:
        await faults.collected(asyncio.to_thread(check_profiles, found.written, wanted))
    return found


def _described(artifacts: ArtifactOrder, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values that a schema describes: without those that are always defined, unless it names them."""
    assert artifacts.schema is not None
    named = artifacts.schema.body.get("properties")
    own = named if isinstance(named, Mapping) else {}
    return {
        name: value
        for name, value in _without_lists_of_secrets(all_values(artifacts, values)).items()
        if name not in RESERVED or name in own
    }


def _without_lists_of_secrets(node: Any) -> Any:
    """Return values without the members that say which others are secret."""
    if isinstance(node, Mapping):
        return {name: _without_lists_of_secrets(value) for name, value in node.items() if name != SECRET_NAMES}
    return [_without_lists_of_secrets(value) for value in node] if isinstance(node, list | tuple) else node


def ordered_wait_s(artifacts: ArtifactOrder) -> float:
    """Return the time that all waits of an order may take."""
    return limit_s([*artifacts.artifacts, *(each.for_limits for each in artifacts.objects)], _USUAL_WAIT_S)


def end_hooks_s(artifacts: ArtifactOrder) -> float:
    """Return the time that the hooks of a deletion may take; a chart counts, as its hooks are known once it is rendered."""
    waits = [*artifacts.artifacts, *(each.for_limits for each in artifacts.objects)]
    mine = [each for each in waits if each.is_chart or (each.hook is not None and each.hook.points & DELETIONS)]
    # Not as `limit_s`: hooks run one after another.
    return min(sum(_USUAL_WAIT_S if each.timeout_s is None else each.timeout_s for each in mine), _LONGEST_END_S)
