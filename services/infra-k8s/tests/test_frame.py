"""The frame of all handlers: a command continues after another worker has changed the inventory of its instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubevnfm_events.objects import ApplyObjects, ReplaceObjects
from kubevnfm_infra_k8s.adapters.documents import StoredReleases
from kubevnfm_infra_k8s.domain.release import Release
from kubevnfm_store.sqlite.store import SqliteStore
from kubevnfm_worker.outcome import NotYet

Make = Callable[..., Any]


class Raced(StoredReleases):
    """Another worker writes the inventory just before this one does, once."""

    is_ahead = True

    async def save(self, release: Release) -> Release:
        present = await self.get(release.vnf_instance_id)
        if self.is_ahead and present is not None:
            self.is_ahead = False
            await super().save(present)
        return await super().save(release)


async def test_an_application_that_has_lost_a_race_continues(site: Any, store: SqliteStore, workload: Make) -> None:
    raced = site.with_changes(releases=Raced(store))
    files = {"f.yaml": workload()}
    package = raced.packages.add(files, package_id="p-i1")
    command = ApplyObjects(vnf_instance_id="i1", package=package, vim=raced.vim, def_files=("f.yaml",))
    assert isinstance(await raced.handlers.apply_objects(command, raced.context()), NotYet)
    assert not raced.handlers.releases.is_ahead
    assert [each.kind for each in (await raced.apply(files)).objects] == ["Deployment"]


async def test_a_change_of_package_that_has_lost_a_race_continues(
    site: Any, store: SqliteStore, make: Make, workload: Make
) -> None:
    await site.apply({"f.yaml": [workload(), make("ConfigMap", "old", data={})]})
    raced = site.with_changes(releases=Raced(store))
    files = {"f.yaml": [workload(), make("ConfigMap", "new", data={})]}
    package = raced.packages.add(files, package_id="p-after")
    command = ReplaceObjects(
        vnf_instance_id="i1", package=package, vim=raced.vim, def_files=("f.yaml",), namespace="default"
    )
    raced.step = "replace"
    assert isinstance(await raced.handlers.replace_objects(command, raced.context(operation="op2")), NotYet)
    assert {each.name for each in (await raced.replace(files)).objects} == {"web", "new"}
