"""Makes the cases of a story out of its moments: which messages were still out, and what became of each case then."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kubevnfm_lcm_api.lifecycle.containers.awaiting import AwaitPackageDraft
from kubevnfm_secrets import KeyRing
from recording import Moment
from worlds.stored_operations import INSTANCES, OPERATIONS, Case, Json, StoredDocument, StoryFile
from worlds.stored_replay import BACKWARD, FORWARD, GIVEN_UP, TERMINAL, replay

_RUNNING = frozenset({"asked", "undoing"})


def cases_of(moments: Sequence[Moment], operation_id: str, instance_id: str) -> list[Case]:
    """Return a case for each moment since the operation was asked for."""
    sent: list[Json] = []
    cases: list[Case] = []
    for number, moment in enumerate(moments, start=1):
        here = list(moment.messages)
        sent = [message for message in sent if _is_out(message, moment)]
        documents = [
            StoredDocument(*place, body, here if place == moment.written else [])
            for place, body in sorted(moment.documents.items())
        ]
        out = sent + (here if moment.is_deletion else [])
        name = f"{number:02d}-{_label(moment, operation_id, instance_id)}"
        cases.append(Case(name, moment.now, documents, [message for message in out if _is_command(message)]))
        sent += [message for message in here if _is_command(message)]
    return cases


def plans_and_steps(cases: Sequence[Case]) -> tuple[list[str], list[str]]:
    """Return the plans of the cases' operations, and the kinds of steps that were asked, done, failed or taken back."""
    bodies = [d.body for case in cases for d in case.documents if d.collection == OPERATIONS]
    steps = {step["kind"] for body in bodies for step in body["internal"]["steps"] if step["state"] != "waiting"}
    return sorted({body["internal"]["plan"] for body in bodies}), sorted(steps)


def is_at_rest(case: Case) -> bool:
    """Whether nothing is under way."""
    operations = _operations(case)
    return not _messages(case) and all(body["operationState"] in TERMINAL for body in operations.values())


def ways_of(case: Case, story: StoryFile) -> Iterator[str]:
    """Yield the ways in which the case can be led to its end."""
    body = _operations(case).get(story.operation_id)
    is_ending = body is not None and (
        body["operationState"] in TERMINAL or body["internal"].get("ending") is not None or _is_settled(case, story)
    )
    # A package that cannot be fetched never comes; tests of packages on demand have the way forward.
    if is_ending or AwaitPackageDraft.plan not in story.plans:
        yield FORWARD
    if body is None:
        yield BACKWARD
        return
    if is_ending:
        return
    yield BACKWARD
    if body["operationState"] == "FAILED_TEMP":
        yield GIVEN_UP


async def with_ends(story: StoryFile, ring: KeyRing) -> StoryFile:
    """Return the story with what became of each case, by the way."""
    return replace(story, cases=[replace(case, ends=await _ends(story, case, ring)) for case in story.cases])


async def _ends(story: StoryFile, case: Case, ring: KeyRing) -> dict[str, Any]:
    ends = {}
    for way in ways_of(case, story):
        with tempfile.TemporaryDirectory() as folder:
            try:
                ends[way] = await replay(story, case, way, Path(folder), ring)
            except Exception as error:
                error.add_note(f"{story.name} {case.name} {way}")
                raise
    return ends


def _operations(case: Case) -> Mapping[str, Json]:
    return {document.id: document.body for document in case.documents if document.collection == OPERATIONS}


def _messages(case: Case) -> list[Json]:
    return [*case.sent, *(message for document in case.documents for message in document.outbox)]


def _is_settled(case: Case, story: StoryFile) -> bool:
    """Whether the instance has the operation's result already: the answer that ends it was given."""
    bodies = [d.body for d in case.documents if (d.collection, d.id) == (INSTANCES, story.instance_id)]
    return not bodies or bodies[0].get("internal", {}).get("currentOperation") != story.operation_id


def _is_command(message: Json) -> bool:
    return "deadline" in message or any(
        part in message["type"] for part in ("advance_operation", "remove_remains", "cancel")
    )


def _is_out(message: Json, moment: Moment) -> bool:
    """Whether the command has no answer in the documents of the moment."""
    body = moment.documents.get((OPERATIONS, message.get("operationid", "")))
    data = message["data"]
    if "occurrence" in data:  # AdvanceOperation
        return body is None or body["operationState"] == data["occurrence"]["operationState"]
    if "command" in data and "type" in data["command"]:  # CancelStep
        return _is_out(data["command"], moment)
    if "stepid" not in message:  # RemoveRemains of a deleted instance
        clean_ups = [one for one in moment.documents.values() if one.get("internal", {}).get("isInternal")]
        return not clean_ups or any(one["operationState"] not in TERMINAL for one in clean_ups)
    if body is None:
        return True
    steps = [step for step in body["internal"]["steps"] if step["id"] == message["stepid"]]
    return any(step["state"] in _RUNNING and step["attempt"] == message["attempt"] for step in steps)


def _label(moment: Moment, operation_id: str, instance_id: str) -> str:
    """Return what the documents say, as a part of a file name: state, steps that run or have failed, and so on."""
    body = moment.documents.get((OPERATIONS, operation_id))
    instance = moment.documents.get((INSTANCES, instance_id))
    if body is None:
        return "claimed"
    internal = body["internal"]
    words = [body["operationState"].lower()]
    words += [
        f"{s['id'].replace('/', '.')}.{s['state']}.{s['attempt']}"
        for s in internal["steps"]
        if s["state"] in {*_RUNNING, "failed"}
    ]
    if body.get("isCancelPending"):
        words.append(f"cancel.{body['cancelMode'].lower()}")
    if "ending" in internal:
        words.append(f"ending.{internal['ending']}")
    if "granting" in internal:
        words.append("granted" if internal["granting"].get("grant") else "granting")
    for (collection, _), other in moment.documents.items():
        if collection == OPERATIONS and other["internal"]["isInternal"]:
            words.append(f"clean-up.{other['operationState'].lower()}")
    if instance is None:
        words.append("deleted")
    elif body["operationState"] not in TERMINAL and instance["internal"].get("currentOperation") != operation_id:
        words.append("settled")
    return "-".join(words)


def text_of(case: Case) -> str:
    """Return what makes the case: two with the same text are one."""
    documents = [[d.collection, d.id, d.body, d.outbox] for d in case.documents]
    return json.dumps([documents, case.sent], sort_keys=True)
