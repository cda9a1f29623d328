"""Operations on a VNF, its links and its volumes, in each of which the process that carries them out dies at a chosen write."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

from packages.kubernetes_objects import a_job
from patience import until, until_true
from real.real_cluster import Body
from real.real_regions import RealRegion, registered

from worlds.every_death import EveryDeath, EveryForm
from worlds.link_world import definition
from worlds.mortal_vnfm import MortalVnfm, PatientUser, Seen, mortal_site

_NADS: Final = definition(
    "k8s.cni.cncf.io", "v1", "NetworkAttachmentDefinition", "network-attachment-definitions", "Namespaced"
)
_WEB: Final = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
      containers: [{name: web, image: "nginx:${tag}", volumeMounts: [{name: v, mountPath: /v}]}]
"""
_SETTINGS: Final = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {tag: '${tag}'}\n"
_ORDER: Final = """\
artifacts:
- {file: before.yaml, hook: pre-apply}
- {file: after.yaml, hook: post-apply}
- {file: leave.yaml, hook: pre-delete}
- {file: left.yaml, hook: post-delete}
- {file: settings.yaml, priority: 1, wait: exists}
- {file: web.yaml, priority: 2}
- {file: late.yaml, after: [web.yaml]}
values: {tag: one}
outputs: {tag: {object: {kind: ConfigMap, name: settings}, jsonpath: data.tag}}
"""
HAS_HELM: Final = shutil.which("helm") is not None
PACKAGE: Final = {
    "artifact-order.yaml": _ORDER,
    "settings.yaml": _SETTINGS,
    "web.yaml": _WEB,
    "late.yaml": _SETTINGS.replace("settings", "late"),
    **{f"{name}.yaml": json.dumps(a_job(name)) for name in ("before", "after", "leave", "left")},
}
"""Hooks at four points, artifacts of two priorities and one with ``after``, an output."""
CHARTED: Final = {
    **PACKAGE,
    "artifact-order.yaml": _ORDER.replace("values:", "- {chart: extra, priority: 3}\nvalues:"),
    "extra/Chart.yaml": "{apiVersion: v2, name: extra, version: 1.0.0}\n",
    "extra/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra}\ndata: {tag: {{ .Values.tag }}}\n",
}
"""The same with a chart, which the real helm renders."""
_SMALL: Final = {
    "artifact-order.yaml": "artifacts: [{file: settings.yaml}]\nvalues: {tag: one}\n",
    "settings.yaml": _SETTINGS,
}
APPLIED: Final = ("Job before", "ConfigMap settings", "Deployment web", "ConfigMap late", "Job after")
"""The objects that a bring-up creates in the namespace of the VNF, beside its claims, its links and that of the chart."""
LINKS, VOLUMES, VNFS, GROUPS = "/virtual-links", "/persistent-volumes", "/vnf_instances", "/group-operations"
CYCLES: Final = (
    ("create", "down"),
    ("patch",),
    ("rollback",),
    ("suspension",),
    ("link",),
    ("volume",),
    ("group",),
)
"""The methods of `Ground` in which the process may die, again and again in this order."""
CHANGES: Final = frozenset({"patch", "rollback"})
"""Those that bring the VNF into its other form."""


@dataclass
class Ground:
    """A region with two links and two volumes of an operator, and VNFs that come and go."""

    vnfm: MortalVnfm
    user: PatientUser
    seen: Seen
    region: RealRegion
    others: list[tuple[Seen, RealRegion]] = field(default_factory=list)
    """The second region, for groups."""
    csar_id: str = ""
    small_id: str = ""
    applied: set[str] = field(default_factory=lambda: set(APPLIED))
    links: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    vnf: Body | None = None
    """The VNF that lives through `patch` and `rollback`."""
    has_second: bool = False
    """Whether it is as the second of its two forms."""
    group_vnfs: list[Body] = field(default_factory=list)
    """Those that `group` has made."""
    writes: list[str] = field(default_factory=list)
    """Those of the last operation, up to the death in it."""

    async def prepare(self) -> None:
        """Make what an operator makes."""
        await self.region.cluster.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", dict(_NADS))
        self.csar_id = await self.region.onboard(CHARTED if HAS_HELM else PACKAGE)
        self.small_id = await self.region.onboard(_SMALL)
        if HAS_HELM:
            self.applied.add("ConfigMap extra")
        for number in (1, 2):
            self.links.append(
                (await self.region.call("POST", LINKS, self.link_request(f"line-{number}"))).must(201).json["id"]
            )
            made = (await self.region.call("POST", VOLUMES, self.volume_request(f"data-{number}"))).must(201)
            self.volumes.append(made.json["id"])
        self.seen.forget()

    def link_request(self, name: str) -> Body:
        """Return the request for a link."""
        spec = {"bridge": {"bridge": f"br-{name}"}}
        return {"cloud_region_id": self.region.id, "name": name, "type": "nad", "spec": spec, "reference": "so"}

    def volume_request(self, name: str) -> Body:
        """Return the request for a volume."""
        source = {"nfs": {"server": "192.0.2.9", "path": f"/{name}"}}
        asked = {"cloud_region_id": self.region.id, "name": name, "size": "1Gi", "access_modes": ["ReadWriteOnce"]}
        return {**asked, "source": source}

    def form(self, second: bool) -> Body:
        """Return the inputs of a VNF in one of two forms: another value, another link, one more volume."""
        claims = [{"persistent_volume_id": self.volumes[0], "claim_name": "data"}]
        if second:
            claims.append({"persistent_volume_id": self.volumes[1], "claim_name": "more"})
        network = {"vdu_id": "web", "virtual_link_id": self.links[second], "interface": "net1"}
        return {"values": {"tag": "two" if second else "one"}, "networks": [network], "volumes": claims}

    # --- a death ------------------------------------------------------------------------------------------------------

    async def killed_in(self, operation: str, dies_at: str = "", nth: int = 1, *, is_done: bool | None = None) -> None:
        """Have the process die in an operation, which must end as if nothing had happened."""
        deaths = len(self.vnfm.deaths)
        try:
            await self.before(operation)
            await self.vnfm.arm(dies_at, nth, is_done=is_done)
            await getattr(self, operation)()
            writes = await self.vnfm.arm()
            self.writes = self.vnfm.last_writes if len(self.vnfm.deaths) > deaths else writes
            assert self.seen.twice() == []
            await getattr(self, f"after_{operation}", self.settle)()
        except BaseException as error:
            error.add_note(
                f"{operation}: died {self.vnfm.deaths[deaths:]}, asked for {dies_at} ({nth}), done: {is_done}"
            )
            raise

    async def before(self, operation: str) -> None:
        """Make what the operation needs."""
        await getattr(self, f"before_{operation}", self.settle)()

    def form_name(self, operation: str) -> str:
        """Return the form to which an operation brings the VNF, since the two have other writes; "": to none."""
        if operation not in CHANGES:
            return ""
        return " to the first form" if self.has_second else " to the second form"

    @staticmethod
    def forms(operations: tuple[str, ...]) -> int:
        """Return how many forms have operations of a cycle."""
        return 2 if CHANGES & set(operations) else 1

    async def killed_everywhere(self, operations: tuple[str, ...], deaths: EveryForm) -> None:
        """Have the process die at each write of operations, which are carried out again and again in this order."""
        for operation in operations:
            # This run has also the last writes of what was made before.
            await self.killed_in(operation)
        names: set[str] = set()
        while len(names) < self.forms(operations) * len(operations) or not all(
            each.is_complete for each in deaths.values()
        ):
            for operation in operations:
                await self.before(operation)
                name = f"{operation}{self.form_name(operation)}"
                names.add(name)
                await self.killed_next(operation, deaths[name])

    async def killed_next(self, operation: str, every: EveryDeath) -> None:
        """Have the process die where it has not died in this operation yet."""
        at, before = every.next(), len(self.vnfm.deaths)
        try:
            if at is None:
                await self.killed_in(operation)
            else:
                (name, nth), is_done = at
                await self.killed_in(operation, name, nth, is_done=is_done)
        except BaseException:
            every.harmed(at)
            raise
        deaths = self.vnfm.deaths[before:]
        if at is None:
            assert not deaths
        else:
            every.died(at, deaths)
        every.saw(self.writes)

    async def settle(self) -> None:
        """Do nothing: the operation needs no more."""

    async def sent(
        self, method: str, path: str, body: Any = None, *, status: int, repeated: tuple[int, ...] = ()
    ) -> Body:
        """Send a request, which may be repeated; return the body of the answer. ``repeated``: what a repetition may get, too."""
        self.user.cuts = 0
        answer = await self.region.call(method, path, body)
        assert answer.status in ((status, *repeated) if self.user.cuts else (status,)), (answer.status, answer.text)
        return dict(answer.json) if answer.text else {}

    # --- bring-up and bring-down --------------------------------------------------------------------------------------

    async def create(self) -> None:
        """Bring a VNF up."""
        self.seen.forget()
        begun = await self.region.start(self.csar_id, namespace=self.region.place(), **self.form(False))
        self.vnf = await self.region.settled(begun)
        self.has_second = False
        place = self.vnf["namespace"]
        wanted = {f"Namespace /{place}", f"PersistentVolumeClaim {place}/data"}
        wanted |= {f"NetworkAttachmentDefinition {place}/line-1"}
        wanted |= {f"{kind} {place}/{name}" for kind, name in (each.split() for each in self.applied)}
        assert {each for each, _ in self.seen.created} == wanted
        await self.is_as_asked()

    async def before_create(self) -> None:
        if self.vnf is not None:
            await self.down()

    async def before_down(self) -> None:
        if self.vnf is None:
            await self.create()

    async def down(self) -> None:
        """Bring the VNF down."""
        assert self.vnf is not None
        self.seen.forget()
        path, place = f"{VNFS}/{self.vnf['vnf_id']}", self.vnf["namespace"]

        async def is_gone() -> bool | None:
            answer = await self.region.call("DELETE", path)
            assert answer.status in {202, 204, 404}, answer.text
            return answer.status in {204, 404} or None

        await until(is_gone, timeout_s=120)
        (await self.region.call("GET", path)).must(404)
        assert not [each for each in self.seen.objects if place in each.split("/")], self.seen.objects
        made = [each for each, _ in self.seen.created]
        assert [made.count(f"Job {place}/{name}") for name in ("leave", "left")] == [1, 1], made
        self.vnf = None
        await self.counts([[], []], [[], []])

        async def is_empty() -> bool:
            return not await self.region.inventory(namespace=place)

        # The watch of the next process sees what has gone.
        await _soon(is_empty)
        assert await self.region.inventory(namespace=place) == []

    # --- changes ------------------------------------------------------------------------------------------------------

    async def before_patch(self) -> None:
        if self.vnf is None:
            await self.create()

    async def patch(self) -> None:
        """Bring the VNF into its other form."""
        await self._changed("PATCH", "", self.form(not self.has_second))

    async def before_rollback(self) -> None:
        await self.before_patch()
        if (await self._newest())["revision"] == 1:
            await self.patch()

    async def rollback(self) -> None:
        """Bring the VNF into its other form by the revision before the newest one."""
        before = (await self._newest())["revision"] - 1
        await self._changed("POST", "/rollback", {"revision": before})

    async def _changed(self, method: str, path: str, body: Body) -> None:
        assert self.vnf is not None
        self.seen.forget()
        newest = (await self._newest())["revision"]
        stays = {
            each: uid for each, uid in self.seen.objects.items() if self.vnf["namespace"] in each and "Job/" not in each
        }
        path = f"/multicloud/v1{VNFS}/{self.vnf['vnf_id']}{path}"
        self.user.cuts = 0
        answer = await self.user.call(method, path, body, headers={"Prefer": "respond-async"})
        # A repeated one finds that the operation runs, or that it has ended.
        assert answer.status in ({202, 200, 409} if self.user.cuts else {202}), answer.text
        self.vnf = await self.region.settled(self.vnf)
        self.has_second = not self.has_second

        made = await self._newest()
        assert (made["revision"], made["result"]) == (newest + 1, "READY")
        await self.is_as_asked()
        now = self.seen.objects
        gone = {each for each in stays if now.get(each) != stays[each]}
        place = self.vnf["namespace"]
        other = "line-2" if not self.has_second else "line-1"
        wanted = {f"NetworkAttachmentDefinition/{place}/{other}"}
        if not self.has_second:
            wanted.add(f"PersistentVolumeClaim/{place}/more")
        assert gone == wanted
        jobs = sorted(each for each, _ in self.seen.created if each.startswith("Job "))
        assert jobs == [f"Job {place}/after", f"Job {place}/before"]

    async def _newest(self) -> Body:
        assert self.vnf is not None
        listed = (await self.region.call("GET", f"{VNFS}/{self.vnf['vnf_id']}/revisions")).must(200).json
        numbers = [each["revision"] for each in listed]
        assert numbers == list(range(numbers[0], numbers[0] - len(numbers), -1))
        return dict(listed[0])

    # --- links, volumes, suspensions --------------------------------------------------------------------------

    async def link(self) -> None:
        """Make a link, have a user with a namespace take it and give it back, remove it."""
        self.seen.forget()
        asked, place = self.link_request("mine"), "NetworkAttachmentDefinition default/mine"
        made = await self.sent("POST", LINKS, {**asked, "namespaces": ["default"]}, status=201, repeated=(200, 202))
        one = f"{LINKS}/{made['id']}"
        await self.link_has(one, ["so"])
        uid = self.seen.objects[place.replace(" ", "/")]
        await self.sent("PUT", f"{one}/references/other", {"namespaces": ["default"]}, status=200, repeated=(202,))
        await self.link_has(one, ["other", "so"])
        await self.sent("DELETE", f"{one}?reference=so", status=200, repeated=(404,))
        await self.link_has(one, ["other"])
        assert self.seen.objects[place.replace(" ", "/")] == uid
        await self.sent("DELETE", f"{one}?reference=other", status=204, repeated=(202, 404))
        await until(lambda: self.is_404(one), timeout_s=60)
        assert [each for each, _ in self.seen.created] == [place]
        assert place.replace(" ", "/") not in self.seen.objects

    async def link_has(self, path: str, references: list[str]) -> None:
        """Check a link once it has no work."""

        async def is_ready() -> Body | None:
            found: Body = (await self.region.call("GET", path)).must(200).json
            return found if found["status"] == "READY" else None

        found = await until(is_ready, timeout_s=60)
        assert (sorted(found["references"]), found["use_count"]) == (references, len(references))

    async def volume(self) -> None:
        """Make a volume, change its labels, remove it."""
        self.seen.forget()
        made = await self.sent("POST", VOLUMES, self.volume_request("mine"), status=201, repeated=(200, 202))
        one = f"{VOLUMES}/{made['id']}"

        async def is_reserved() -> bool | None:
            return (await self.region.call("GET", one)).must(200).json["phase"] == "Reserved" or None

        await until(is_reserved, timeout_s=60)
        await self.sent("PATCH", one, {"labels": {"use": "tests"}}, status=200, repeated=(202,))
        await self.sent("DELETE", one, status=200, repeated=(202, 404))
        await until(lambda: self.is_404(one), timeout_s=60)
        assert [each for each, _ in self.seen.created] == [f"PersistentVolume /kubevnfm-{made['id']}"]
        assert f"PersistentVolume//kubevnfm-{made['id']}" not in self.seen.objects

    async def is_404(self, path: str) -> bool | None:
        """Return whether there is nothing at a path."""
        return (await self.region.call("GET", path)).status == 404 or None

    async def before_suspension(self) -> None:
        await self.before_patch()

    async def suspension(self) -> None:
        """Suspend and resume the VNF, and then its region."""
        assert self.vnf is not None
        self.seen.forget()
        one = f"{VNFS}/{self.vnf['vnf_id']}"
        for path in (one, f"/cloud-regions/{self.region.id}"):
            await self.sent("PUT", f"{path}/suspension", {"reason": "new switches"}, status=200)
            assert (await self.sent("GET", f"{path}/suspension", status=200))["reason"] == "new switches"
            refused = (await self.region.call("PATCH", one, self.form(not self.has_second))).must(409).json
            assert refused["type"] == "suspended"
            await self.sent("DELETE", f"{path}/suspension", status=204, repeated=(404,))
            (await self.region.call("GET", f"{path}/suspension")).must(404)
        assert not self.seen.created
        self.vnf = await self.region.settled(self.vnf)
        await self.is_as_asked()

    # --- groups -------------------------------------------------------------------------------------------------------

    async def group(self) -> None:
        """Bring one VNF up in each of two regions by one call."""
        regions = [(self.seen, self.region), *self.others]
        for seen, _ in regions:
            seen.forget()
        asked = {"csar_id": self.small_id, "regions": [{"cloud_region_id": each.id} for _, each in regions]}
        begun = await self.sent("POST", VNFS, asked, status=202)

        async def has_ended() -> Body | None:
            found: Body = (await self.region.call("GET", f"{GROUPS}/{begun['id']}")).must(200).json
            return found if found["status"] != "RUNNING" else None

        ended = await until(has_ended, timeout_s=120)
        assert ended["status"] == "COMPLETED", ended
        listed = (await self.region.call("GET", f"{VNFS}?group_operation={begun['id']}")).must(200).json
        by_region = {each["cloud_region_id"]: each for each in listed}
        assert (len(listed), set(by_region)) == (len(regions), {each.id for _, each in regions})
        for seen, region in regions:
            place = by_region[region.id]["namespace"]
            assert sorted(each for each, _ in seen.created) == [f"ConfigMap {place}/settings", f"Namespace /{place}"]
        self.group_vnfs = listed

    async def after_group(self) -> None:
        for vnf in self.group_vnfs:
            await self.sent("DELETE", f"{VNFS}/{vnf['vnf_id']}", status=204)
        for seen in (self.seen, *(each for each, _ in self.others)):
            assert not [each for each in seen.objects if self.group_vnfs[0]["namespace"] in each.split("/")]

    # --- what must hold -----------------------------------------------------------------------------------------------

    async def is_as_asked(self) -> None:
        """Check the VNF, its objects, and the counts."""
        assert self.vnf is not None
        form, place = self.form(self.has_second), self.vnf["namespace"]
        assert self.vnf["outputs"] == form["values"], self.vnf
        wanted = {each.replace(" ", "") for each in self.applied} | {f"Namespace{place}"}
        wanted |= {f"NetworkAttachmentDefinitionline-{1 + self.has_second}", "PersistentVolumeClaimdata"}
        wanted |= {"PersistentVolumeClaimmore"} if self.has_second else set()

        def objects() -> set[str]:
            found = [each for each in self.seen.objects if place in each.split("/")]
            return {each.partition("/")[0] + each.rpartition("/")[2] for each in found}

        async def are_as_wanted() -> bool:
            return objects() == wanted

        # The object of a link that was left goes after the reference.
        await _soon(are_as_wanted)
        assert objects() == wanted
        holder = [f"vnf:{self.vnf['vnf_id']}"]
        await self.counts(
            [[], holder] if self.has_second else [holder, []], [holder, holder if self.has_second else []]
        )

    async def counts(self, links: list[list[str]], volumes: list[list[str]]) -> None:
        """Check who holds the links and the volumes."""
        for link_id, holders in zip(self.links, links, strict=True):
            link = (await self.region.call("GET", f"{LINKS}/{link_id}")).must(200).json
            assert (sorted(link["references"]), link["use_count"]) == (sorted(["so", *holders]), 1 + len(holders))
            await self._has(f"{LINKS}/{link_id}", "status", "READY")
        for volume_id, holders in zip(self.volumes, volumes, strict=True):
            volume = (await self.region.call("GET", f"{VOLUMES}/{volume_id}")).must(200).json
            assert volume["in_use_by"] == holders, volume
            await self._has(f"{VOLUMES}/{volume_id}", "phase", "Bound" if holders else "Reserved")

    async def _has(self, path: str, member: str, wanted: str) -> None:
        """Check what follows the counts: a process that dies between the two leaves it to the next one."""

        async def has() -> bool:
            return bool((await self.region.call("GET", path)).must(200).json[member] == wanted)

        await _soon(has)
        found = (await self.region.call("GET", path)).must(200).json
        assert found[member] == wanted, found


async def _soon(holds: Callable[[], Awaitable[bool]]) -> None:
    """Return once this holds, or after a minute."""
    with suppress(TimeoutError):
        await until_true(holds, timeout_s=60, pause_s=0.05)


G = TypeVar("G", bound=Ground)


@asynccontextmanager
async def a_ground(folder: Path, kind: type[G], *, regions: int = 1) -> AsyncIterator[G]:
    """Yield a ground that is prepared, with as many regions. At the end remove all, after which the clusters have what they had."""
    async with AsyncExitStack() as stack:
        vnfm, user, seen, clusters = await stack.enter_async_context(mortal_site(folder, regions))
        given = [await stack.enter_async_context(registered(user, each, folder)) for each in clusters]
        ground = kind(vnfm, user, seen[0], given[0], list(zip(seen[1:], given[1:], strict=True)))
        await ground.prepare()
        yield ground
        if ground.vnf is not None:
            await ground.down()
        for link_id in ground.links:
            await ground.sent("DELETE", f"{LINKS}/{link_id}?reference=so", status=204)
        for volume_id in ground.volumes:
            await ground.sent("DELETE", f"{VOLUMES}/{volume_id}", status=200)
        assert [each for each in seen[0].objects if not each.startswith("CustomResourceDefinition/")] == []
        assert [each.objects for each in seen[1:]] == [{}] * (regions - 1)
