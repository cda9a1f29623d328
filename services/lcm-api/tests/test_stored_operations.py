"""Operations that a released version has stored are run to their end; tests/fixtures/stored/README.md has the story."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.lifecycle.core.sequences import SEQUENCES
from kubevnfm_lcm_api.views.earlier_runs import without_draft
from kubevnfm_sol.lcm import OperationState
from worlds.stored_operations import (
    FIXTURES,
    NEXT,
    OPERATIONS,
    Case,
    StoryFile,
    key_ring,
    read_story,
    story_paths,
    versions,
)
from worlds.stored_replay import cancel, differences, is_cancellable, replay, service_commands


def one_way(number: int, case: Case) -> list[str]:
    """Return one way in which every fifth case is led to its end: another one than for the next of them.

    A case is the moment after one write, so its neighbour is the same step a little later.
    """
    if number % 5:
        return []
    ways = sorted(case.ends)
    return [ways[(number // 5) % len(ways)]]


def other_ways(number: int, case: Case) -> list[str]:
    """Return the ways that `one_way` leaves out."""
    return sorted(set(case.ends) - set(one_way(number, case)))


async def faults_of(
    path: Path, folder: Path, ways: Callable[[int, Case], list[str]], taken_down: set[str] | None = None
) -> list[str]:
    """Return where the story's cases did not end as in the version that stored them; ``taken_down`` as for `replay`."""
    faults: list[str] = []
    ring, story = key_ring(path.parent), read_story(path)
    for number, case in enumerate(story.cases):
        for way in ways(number, case):
            expected = case.ends[way]
            place = folder / f"{number}-{way.replace(' ', '-')}"
            place.mkdir()
            try:
                end = await replay(story, case, way, place, ring, taken_down)
            except Exception as error:  # noqa: BLE001  # the other cases are to run too
                faults.append(f"{case.name}, {way}: {error!r}\n{''.join(traceback.format_exception(error)[-4:])}")
                continue
            found = {"state": end.state, "asked": end.asked, "operation": end.operation, "instance": end.instance}
            wanted = {name: getattr(expected, name) for name in found}
            faults += [f"{case.name}, {way}: {each}" for each in differences(wanted, found)]
    return faults


@pytest.fixture(scope="module")
def taken_down() -> set[str]:
    """The instances that were taken down. Most cases end with an instance like that of another case, of either version."""
    return set()


every_story = pytest.mark.parametrize("path", story_paths(), ids=lambda path: f"{path.parent.name}-{path.stem}")


@every_story
async def test_a_stored_operation_is_run_to_an_end(path: Path, tmp_path: Path, taken_down: set[str]) -> None:
    faults = await faults_of(path, tmp_path, one_way, taken_down)
    assert not faults, "\n".join(faults)


@pytest.mark.deep
@every_story
async def test_a_stored_operation_is_run_to_each_of_its_ends(path: Path, tmp_path: Path) -> None:
    faults = await faults_of(path, tmp_path, other_ways)
    assert not faults, "\n".join(faults)


@every_story
async def test_a_command_that_an_older_version_has_sent_can_be_cancelled(path: Path, tmp_path: Path) -> None:
    """The service knows the command by the id that the older version gave it."""
    story = read_story(path)
    running = [case for case in story.cases if is_cancellable(story, case)]
    for case in running[-1:]:
        named = await cancel(story, case, tmp_path, key_ring(path.parent))
        assert named == {command.id for command in service_commands(case)}, case.name


def test_operations_of_the_first_release_are_listed() -> None:
    """Lists of operations, and the times of earlier runs, are read without the drafts, where that release had the arguments of steps."""
    cases = [read_story(path).cases[-1] for path in story_paths() if path.parent.name == "0.1.0"]
    bodies = [each.body for case in cases for each in case.documents if each.collection == OPERATIONS]
    assert any("name" in step for body in bodies for step in body["internal"]["steps"])
    for body in bodies:
        listed = without_draft({**body, "internal": {**body["internal"], "draft": None}})
        assert [step.kind for step in listed.steps] == [
            step.kind for step in OccurrenceRecord.from_document(body).steps
        ]


def stories_of_now() -> list[StoryFile]:
    """Return the stories of the newest release and of what comes after it."""
    newest = [version for version in versions() if version != NEXT][-1]
    return [read_story(path) for path in story_paths() if path.parent.name in {newest, NEXT}]


def operations_of_now() -> list[dict[str, Any]]:
    """Return the documents of the operations in those stories."""
    documents = [document for story in stories_of_now() for case in story.cases for document in case.documents]
    return [document.body for document in documents if document.collection == OPERATIONS]


def test_every_plan_and_every_step_has_fixtures() -> None:
    records = [OccurrenceRecord.from_document(body) for body in operations_of_now()]
    kinds = {step.kind for record in records for step in record.steps if step.state is not StepState.WAITING}
    hint = f"write stories for them in tests/stored/*_stories.py, then: make stored-operations VERSION={NEXT}"
    assert set(SEQUENCES.plans) - {record.plan for record in records} == set(), hint
    assert set(SEQUENCES.kinds) - kinds == set(), hint


def test_every_state_of_an_operation_has_fixtures() -> None:
    states = {body["operationState"] for body in operations_of_now()}
    assert states == set(OperationState)


def test_fixtures_hold_no_secret_in_clear_text() -> None:
    texts = [path.read_text(encoding="utf-8") for path in story_paths()]
    secrets = (
        "secret-of-the-balancer",
        "secret-of-the-cloud",
        "token-of-the-cluster",
        "token-of-the-vim",
        '"password":"ubuntu"',
    )
    assert [secret for secret in secrets if any(secret in text for text in texts)] == []
    assert any('"$sealed"' in text for text in texts)


def test_fixtures_stay_small() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.rglob("*.json")) < 3 * 2**20 * len(versions())
