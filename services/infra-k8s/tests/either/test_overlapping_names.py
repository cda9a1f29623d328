"""VNFs in one namespace whose StatefulSets, claim templates and claims have names that overlap (capi.md CR-023).

The tests know the owner of a claim from the moment at which it appears: a step of one VNF alone was on its way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubevnfm_events.objects import LeftObject, ObjectsApplied, VduTarget
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.domain.errors import ForeignObjects
from kubevnfm_infra_k8s.domain.objects import CLAIM_OF_ANNOTATION, INSTANCE_LABEL, ObjectKey, Resource, annotations_of
from kubevnfm_store.sqlite.store import SqliteStore
from packages.kubernetes_objects import an_object
from patience import until_true
from worlds.lives import Lives

CLAIMS = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True)
VOLUMES = Resource("v1", "PersistentVolume", "persistentvolumes", namespaced=False)
SETS = Resource("apps/v1", "StatefulSet", "statefulsets", namespaced=True, subresources=frozenset({"scale"}))
MOST: Final = 3
"""The most pods of a StatefulSet."""
NAMES: Final = ("db", "db-1", "db-replica", "db-replica-1-2", "replica", "1")
TEMPLATES: Final = (("data",), ("data-db",), ("data", "data-db"), ("data-db-1",))
MOVES: Final = ("scale", "scale by others", "heal", "restart")
_numbers = count()


@dataclass
class Vnf:
    """A VNF with one StatefulSet."""

    ground: Any
    name: str
    """The name of the StatefulSet."""
    templates: Sequence[str] = ("data",)
    is_marked: bool = True
    """False: an earlier version has applied it, so that the claim templates have no mark, and no claim was recorded."""
    replicas: int = 1
    claims: dict[str, str] = field(default_factory=dict)
    """The uid by name of the claims that it has made."""
    instance: str = field(default_factory=lambda: f"i{next(_numbers)}")
    applied: ObjectsApplied | None = None

    @property
    def vdus(self) -> Sequence[VduTarget]:
        return (VduTarget(vdu_id="V", name=self.name),)

    @property
    def body(self) -> dict[str, Any]:
        mounts = [{"name": each, "mountPath": f"/{each}"} for each in self.templates]
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": self.ground.own_name("disk"),
            "resources": {"requests": {"storage": "1Mi"}},
        }
        labels = {"app": self.name}
        container = {"name": "main", "image": "nginx:1.27", "volumeMounts": mounts}
        pod = {"terminationGracePeriodSeconds": 0, "containers": [container]}
        spec = {
            "serviceName": self.name,
            "replicas": self.replicas,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": each}, "spec": claim} for each in self.templates],
        }
        return an_object("StatefulSet", self.name, api_version="apps/v1", spec=spec)

    async def instantiate(self) -> None:
        if not self.is_marked:
            body = self.body
            body["metadata"]["labels"] = {INSTANCE_LABEL: self.instance}
            body["spec"]["template"]["metadata"]["labels"] |= {INSTANCE_LABEL: self.instance}
            await self.ground.create(body)
        operation = f"apply-{next(_numbers)}"  # of its own, as its time limit is
        self.applied = await self.ground.apply(self.body, instance=self.instance, vdus=self.vdus, operation=operation)
        await self._appeared()
        await self._forget()

    async def move(self, move: str, replicas: int) -> None:
        """Do one step; claims that appear meanwhile are its own."""
        assert self.applied is not None
        step = f"{move}-{next(_numbers)}"
        if move == "scale":
            (owner,) = (one for one in self.applied.objects if one.kind == "StatefulSet")
            await self.ground.site.scale({owner: replicas}, instance=self.instance, operation=step)
            self.replicas = replicas
        elif move == "scale by others":
            key = ObjectKey("apps/v1", "StatefulSet", self.ground.namespace, self.name)
            await self.ground.cluster.scale(SETS, key, replicas=replicas)
            self.replicas = replicas
            await until_true(self._is_settled)
        elif move == "heal":
            pods = [pod for pod in self.applied.pods if pod.name == f"{self.name}-0"]
            self.applied = await self.ground.site.heal(
                pods, def_files=["f.yaml"], vdus=self.vdus, instance=self.instance, operation=step,
                namespace=self.ground.namespace,
            )  # fmt: skip
        else:
            restarted = {"spec": {"template": {"metadata": {"annotations": {"restarted": step}}}}}
            await self.ground.as_other("apps/v1", "StatefulSet", self.name, restarted)
            await until_true(self._is_settled)
        await self._appeared()

    async def terminate(self) -> Sequence[LeftObject]:
        done = await self.ground.delete(instance=self.instance)
        return tuple(done.left)

    async def _is_settled(self) -> bool:
        body = await self.ground.shown("apps/v1", "StatefulSet", self.name)
        status = body["status"]
        return bool(
            status.get("observedGeneration") == body["metadata"]["generation"]
            and status.get("replicas", 0) == status.get("readyReplicas", 0) == self.replicas
            and status.get("currentRevision") == status.get("updateRevision")
        )

    async def _appeared(self) -> None:
        others = {claim for vnf in self.ground.vnfs if vnf is not self for claim in vnf.claims.items()}
        self.claims |= dict((await claims_in(self.ground)).items() - others)

    async def _forget(self) -> None:
        """Bring the stored inventory to the form of an earlier version."""
        releases = self.ground.site.handlers.releases
        release = await releases.get(self.instance)
        if not self.is_marked:
            await releases.save(replace(release, entries=[replace(each, claims=()) for each in release.entries]))


async def claims_in(ground: Any) -> Mapping[str, str]:
    """Return the uid by name of the claims of the namespace whose deletion has not begun."""
    bodies = await ground.cluster.list(CLAIMS, namespace=ground.namespace)
    return {
        body["metadata"]["name"]: body["metadata"]["uid"]
        for body in bodies
        if not body["metadata"].get("deletionTimestamp")
    }


@pytest.fixture
async def stage(ground: Any) -> Any:
    """Yield the ground; its list ``vnfs`` are those that run."""
    ground.vnfs = []
    yield ground
    await clear(ground)
    await delete_volumes(ground)


async def clear(ground: Any) -> None:
    """End what a failed test has left."""
    for vnf in ground.vnfs:
        with suppress(Exception):
            await vnf.terminate()
    ground.vnfs.clear()
    for body in await ground.cluster.list(SETS, namespace=ground.namespace):
        key = ObjectKey("apps/v1", "StatefulSet", ground.namespace, body["metadata"]["name"])
        await ground.cluster.delete(SETS, key)
    await empty(ground)


async def with_volumes(ground: Any, number: int) -> None:
    disk = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": ground.own_name("disk"),
        "capacity": {"storage": "1Mi"},
        "hostPath": {"path": "/tmp/disk"},
    }
    names = [f"{ground.own_name('v')}-{next(_numbers)}" for _ in range(number)]
    await asyncio.gather(*(ground.create(an_object("PersistentVolume", name, spec=disk)) for name in names))


async def empty(ground: Any) -> None:
    """Delete what a life has left, so that the next one begins with nothing."""
    for name in await claims_in(ground):
        await ground.cluster.delete(CLAIMS, ObjectKey("v1", "PersistentVolumeClaim", ground.namespace, name))

    async def is_empty() -> bool:
        return not await ground.cluster.list(CLAIMS, namespace=ground.namespace)

    await until_true(is_empty)
    # The controller may just give any other one to a new claim.
    await delete_volumes(ground, phase="Released")


async def delete_volumes(ground: Any, *, phase: str = "") -> None:
    for volume in await ground.cluster.list(VOLUMES):
        is_own = volume["spec"].get("storageClassName") == ground.own_name("disk")
        if is_own and phase in ("", (volume.get("status") or {}).get("phase")):
            key = ObjectKey("v1", "PersistentVolume", "", volume["metadata"]["name"])
            await ground.cluster.delete(VOLUMES, key)


async def begin(ground: Any, *vnfs: Vnf) -> None:
    await with_volumes(ground, MOST * sum(len(vnf.templates) for vnf in vnfs))
    for vnf in vnfs:
        await vnf.instantiate()
        ground.vnfs.append(vnf)


@pytest.mark.parametrize("is_marked", [True, False], ids=["of this version", "of an earlier version"])
@pytest.mark.parametrize("other", ["db-replica", "db-1", "db-0-1"])
async def test_a_terminate_leaves_the_claims_of_a_set_whose_name_begins_with_its_own(
    stage: Any, other: str, is_marked: bool
) -> None:
    first, second = Vnf(stage, "db", is_marked=is_marked), Vnf(stage, other, is_marked=is_marked)
    await begin(stage, first, second)
    stage.vnfs.remove(first)
    assert await first.terminate() == ()
    assert await claims_in(stage) == second.claims == {f"data-{other}-0": second.claims[f"data-{other}-0"]}
    stage.vnfs.remove(second)
    assert await second.terminate() == ()
    assert await claims_in(stage) == {}


async def test_claims_of_pods_that_left_are_deleted_too(stage: Any) -> None:
    """Another party has scaled out and in again, so that no operation has seen them."""
    vnf = Vnf(stage, "db")
    await begin(stage, vnf)
    await vnf.move("scale by others", 3)
    await vnf.move("scale by others", 1)
    assert len(await claims_in(stage)) == 3
    stage.vnfs.remove(vnf)
    assert await vnf.terminate() == ()
    assert await claims_in(stage) == {}


async def test_claims_of_an_earlier_version_are_recorded_before_their_pods_leave(stage: Any) -> None:
    vnf = Vnf(stage, "db", is_marked=False, replicas=3)
    await begin(stage, vnf)
    await vnf.move("scale", 1)
    release = await stage.site.handlers.releases.get(vnf.instance)
    assert {each.name: each.uid for entry in release.entries for each in entry.claims} == vnf.claims
    stage.vnfs.remove(vnf)
    assert await vnf.terminate() == ()
    assert await claims_in(stage) == {}


async def test_a_claim_without_proof_stays_and_is_named(stage: Any) -> None:
    """CR-023: it has the name of a claim of the set, but no pod of it was ever seen with it, and it was made before."""
    vnf = Vnf(stage, "db", is_marked=False)
    claim = vnf.body["spec"]["volumeClaimTemplates"][0]["spec"]
    await with_volumes(stage, 1)
    made = await stage.create(an_object("PersistentVolumeClaim", "data-db-0", spec=claim))
    await begin(stage, vnf)
    await stage.create(an_object("PersistentVolumeClaim", "data-db-7", spec=claim))
    await stage.create(an_object("PersistentVolumeClaim", "data-db-x", spec=claim))
    stage.vnfs.remove(vnf)
    left = await vnf.terminate()
    assert [(each.kind, each.name) for each in left] == [
        ("PersistentVolumeClaim", "data-db-0"),
        ("PersistentVolumeClaim", "data-db-7"),
    ]
    said = "\n".join(each.message for each in stage.site.progress)
    for name in ("data-db-0", "data-db-7"):
        place = f"PersistentVolumeClaim {stage.namespace}/{name}"
        assert f"{place}: stays: nothing proves that StatefulSet {stage.namespace}/db has made it" in said
    there = await claims_in(stage)
    assert there.keys() == {"data-db-0", "data-db-7", "data-db-x"}
    assert there["data-db-0"] == made["metadata"]["uid"]


async def test_claims_whose_label_others_have_removed_are_deleted_by_their_uid(stage: Any) -> None:
    vnf = Vnf(stage, "db")
    await begin(stage, vnf)
    plain = {"metadata": {"labels": {INSTANCE_LABEL: None}, "annotations": {CLAIM_OF_ANNOTATION: None}}}
    await stage.as_other("v1", "PersistentVolumeClaim", "data-db-0", plain)
    stage.vnfs.remove(vnf)
    assert await vnf.terminate() == ()
    assert await claims_in(stage) == {}


async def test_a_set_that_would_take_the_claim_of_another_vnf_is_refused(stage: Any) -> None:
    """CR-020: the template `data-db` of `replica` and the template `data` of `db-replica` name the same claim."""
    owner, taker = Vnf(stage, "db-replica"), Vnf(stage, "replica", templates=["data-db"])
    await begin(stage, owner)
    with pytest.raises(ForeignObjects, match="data-db-replica-0"):
        await taker.instantiate()
    assert await taker.terminate() == ()
    assert await stage.shown("apps/v1", "StatefulSet", "replica") is None
    assert await claims_in(stage) == owner.claims


async def test_a_later_vnf_finds_the_claims_that_an_earlier_one_has_kept(stage: Any) -> None:
    """CR-023: they stay again, as their annotation says; one without it is not the later one's, and is named."""
    earlier, later = Vnf(stage, "db", replicas=2), Vnf(stage, "db", replicas=2)
    await begin(stage, earlier)
    keep = {"metadata": {"annotations": {"kubevnfm.io/keep": "true"}}}
    for name in earlier.claims:
        await stage.as_other("v1", "PersistentVolumeClaim", name, keep)
    stage.vnfs.remove(earlier)
    assert {each.name for each in await earlier.terminate()} == earlier.claims.keys()
    await begin(stage, later)
    assert await claims_in(stage) == earlier.claims
    unkept = {"metadata": {"annotations": {"kubevnfm.io/keep": None}}}
    await stage.as_other("v1", "PersistentVolumeClaim", "data-db-1", unkept)
    stage.vnfs.remove(later)
    assert [each.name for each in await later.terminate()] == ["data-db-1"]
    assert await claims_in(stage) == earlier.claims


async def test_a_claim_that_another_vnf_uses_stays_and_is_named(stage: Any) -> None:
    """CR-023."""
    owner, user = Vnf(stage, "db-replica", replicas=2), Vnf(stage, "replica", templates=["data-db"])
    await begin(stage, user)
    # Its claim with the number 0 is the owner's too: numbers begin elsewhere.
    await with_volumes(stage, MOST)
    stage.vnfs.append(owner)
    body = owner.body
    body["spec"]["ordinals"] = {"start": 1}
    owner.applied = await stage.apply(body, instance=owner.instance, vdus=owner.vdus)
    owner.claims = dict((await claims_in(stage)).items() - user.claims.items())
    assert owner.claims.keys() == {"data-db-replica-1", "data-db-replica-2"}
    await user.move("scale", 2)
    stage.vnfs.remove(owner)
    assert [each.name for each in await owner.terminate()] == ["data-db-replica-1"]
    assert (await claims_in(stage)).keys() == {"data-db-replica-0", "data-db-replica-1"}


async def test_labels_that_a_package_chooses_get_it_no_claim_of_another_vnf(stage: Any) -> None:
    """CR-023: of a set with the name, template and selector by which it finds the claim that a VNF of an earlier version keeps."""

    class Hostile(Vnf):
        @property
        def body(self) -> dict[str, Any]:
            body = super().body
            body["spec"]["selector"]["matchLabels"] = {"app": "db-replica"}
            body["spec"]["template"]["metadata"]["labels"] = {"app": "db-replica"}
            return body

    hostile = Hostile(stage, "replica", templates=["data-db"], replicas=0)
    victim = Vnf(stage, "db-replica", is_marked=False, replicas=2)
    await begin(stage, hostile)
    await with_volumes(stage, 2)
    stage.vnfs.append(victim)
    await victim.instantiate()
    await victim.move("scale", 1)
    await hostile.move("scale", 2)
    stage.vnfs.remove(hostile)
    await hostile.terminate()
    assert (await claims_in(stage)).items() >= victim.claims.items()


async def test_another_package_can_change_a_set_with_marks_and_one_without(stage: Any) -> None:
    """CR-018: templates do not change, so a set keeps the marks that it has; also after it was adopted."""
    marked, plain = Vnf(stage, "db"), Vnf(stage, "db-1", is_marked=False)
    await begin(stage, marked, plain)
    for vnf in (marked, plain):
        body = vnf.body
        body["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:1.28"
        await stage.site.replace(
            {"f.yaml": [body]}, vdus=vnf.vdus, instance=vnf.instance, namespace=stage.namespace, operation=vnf.instance
        )
        there = await stage.shown("apps/v1", "StatefulSet", vnf.name)
        (template,) = there["spec"]["volumeClaimTemplates"]
        assert (CLAIM_OF_ANNOTATION in annotations_of(template)) == vnf.is_marked
    taken = Vnf(stage, "db")
    await stage.apply(taken.body, instance=taken.instance, adopt=True)
    assert [each.kind for each in await taken.terminate()] == []
    assert (await claims_in(stage)).items() >= marked.claims.items()


async def test_pruning_deletes_the_claims_of_the_pruned_set_only(stage: Any) -> None:
    """CR-022: both sets are of one instance, and so is their label."""
    gone, kept = Vnf(stage, "db"), Vnf(stage, "db-1")
    await with_volumes(stage, 2)
    instance = stage.namespace
    await stage.apply(gone.body, kept.body)
    await stage.site.replace({"f.yaml": [kept.body]}, instance=instance, namespace=instance)
    assert (await claims_in(stage)).keys() == {"data-db-1-0"}
    assert (await stage.delete()).left == ()
    assert await claims_in(stage) == {}


async def test_claims_of_a_set_that_is_kept_stay(stage: Any) -> None:
    vnf = Vnf(stage, "db")
    await with_volumes(stage, 2)
    body = vnf.body
    body["metadata"]["annotations"] = {"kubevnfm.io/keep": "true"}
    claim = an_object("PersistentVolumeClaim", "other", spec=body["spec"]["volumeClaimTemplates"][0]["spec"])
    await stage.apply(body, claim, instance=vnf.instance)
    assert {each.name for each in await vnf.terminate()} == {"db", "data-db-0"}
    assert (await claims_in(stage)).keys() == {"data-db-0"}
    await stage.cluster.delete(SETS, ObjectKey("apps/v1", "StatefulSet", stage.namespace, "db"))


@pytest.mark.parametrize("is_marked", [True, False], ids=["of this version", "of an earlier version"])
async def test_claims_are_found_although_the_process_is_killed_after_each_write(
    stage: Any, store: SqliteStore, is_marked: bool
) -> None:
    """Between the creation of a claim, its record, and the deletion of the set that proves whose it is."""
    deaths = Lives()
    handlers = stage.site.handlers
    site = stage.site.with_changes(
        clusters=deaths.clusters(handlers.clusters), releases=StoredReleases(deaths.store(store))
    )
    vnf, other = Vnf(stage, "db", is_marked=is_marked, replicas=2), Vnf(stage, "db-1", is_marked=is_marked)
    await begin(stage, vnf, other)
    vnf.ground = replace(stage, site=site)
    assert vnf.applied is not None
    (owner,) = (one for one in vnf.applied.objects if one.kind == "StatefulSet")
    await deaths.until_done(lambda: site.scale({owner: 1}, instance=vnf.instance))
    done = await deaths.until_done(lambda: vnf.ground.delete(instance=vnf.instance, operation="end"))
    stage.vnfs.remove(vnf)
    assert done.left == ()
    assert len(deaths.deaths) >= 4  # two claims may be deleted at once
    assert await claims_in(stage) == other.claims


@st.composite
def lives(draw: st.DrawFn) -> tuple[Sequence[tuple[str, Sequence[str], bool]], Sequence[tuple[int, str, int]], Any]:
    """Return VNFs, steps of them (VNF, step, replicas), and the order of their terminations."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=2, max_size=3, unique=True))
    vnfs = [(name, draw(st.sampled_from(TEMPLATES)), draw(st.booleans())) for name in names]
    step = st.tuples(st.integers(0, len(vnfs) - 1), st.sampled_from(MOVES), st.integers(1, MOST))
    return vnfs, draw(st.lists(step, max_size=4)), draw(st.permutations(range(len(vnfs))))


async def lived(ground: Any, life: Any) -> None:
    """Live it, and check after each termination what is there."""
    await clear(ground)  # a life that failed before it
    declared, steps, order = life
    vnfs: list[Vnf] = []
    unowned: dict[str, str] = {}
    for name, templates, is_marked in declared:
        vnf = Vnf(ground, name, templates, is_marked)
        await with_volumes(ground, MOST * len(templates))
        vnfs.append(vnf)
        try:
            await vnf.instantiate()
        except ForeignObjects:  # before anything was made
            assert await vnf.terminate() == ()
            continue
        ground.vnfs.append(vnf)
    for number, move, replicas in steps:
        if vnfs[number] in ground.vnfs:
            await vnfs[number].move(move, replicas)
    for number in order:
        vnf = vnfs[number]
        if vnf not in ground.vnfs:
            continue
        before = await claims_in(ground)
        left = {each.name: each.uid for each in await vnf.terminate()}
        ground.vnfs.remove(vnf)
        there = await claims_in(ground)
        # Nothing of others has gone, and of its own nothing is there but what was named.
        assert before.items() - vnf.claims.items() <= there.items()
        assert vnf.claims.items() & there.items() <= left.items()
        unowned |= vnf.claims.items() & there.items()
    assert await claims_in(ground) == unowned
    await empty(ground)


LIVES: Final = given(lives())
QUIET: Final = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@settings(max_examples=5, deadline=None, suppress_health_check=QUIET)
@LIVES
async def test_the_life_of_a_vnf_leaves_the_others_alone_and_nothing_of_its_own(stage: Any, life: Any) -> None:
    """CR-023."""
    await lived(stage, life)


@pytest.mark.deep
@settings(max_examples=100, deadline=None, suppress_health_check=QUIET)
@LIVES
async def test_a_hundred_lives_leave_the_others_alone(stage: Any, life: Any) -> None:
    await lived(stage, life)
