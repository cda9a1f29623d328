"""A CNF of lcm-api alone: built with the answers of twins."""

from __future__ import annotations

from typing import Any, TypeVar

from kubevnfm_events.objects import ObjectFacts, ObjectsApplied, PodFacts

from worlds.lcm_world import World

E = TypeVar("E", bound=ObjectsApplied)
APPLY = "infra.k8s.apply_objects"
OBJECTS = (
    ObjectFacts(api_version="apps/v1", kind="Deployment", namespace="default", name="web", uid="o", vdu_id="VDU1"),
    ObjectFacts(api_version="v1", kind="ConfigMap", namespace="default", name="web-pages", uid="c"),
)


def of_pods(kind: type[E], count: int, **known: Any) -> E:
    """Return the answer of infra-k8s for a CNF with this number of pods."""
    pods = (
        PodFacts(vdu_id="VDU1", name=f"web-{n}", namespace="default", uid=f"u{n}", owner_kind="Deployment")
        for n in range(count)
    )
    return kind(namespace="default", objects=OBJECTS, pods=tuple(pods), **known)


async def deployed(
    world: World, *objects: ObjectFacts, content: bytes | None = None, pods: int = 2, **request: Any
) -> str:
    """Return the sample CNF, INSTANTIATED with two pods of a Deployment, or with these objects."""
    applied = of_pods(ObjectsApplied, pods)
    world.twins.answers[APPLY] = applied.model_copy(update={"objects": objects}) if objects else applied
    if content is None:
        await world.sample("cnf")
    else:
        await world.upload(content)
    world.vims.add("k8s", "kubernetes")
    instance_id = await world.create("cnf")
    vims = {"k": {"vimId": "k8s", "vimType": "kubernetes"}}
    asked = await world.instantiate(instance_id, "cnf", vimConnectionInfo=vims, **request)
    await world.reached(asked, "COMPLETED")
    return instance_id
