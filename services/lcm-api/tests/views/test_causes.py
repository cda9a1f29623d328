"""Why an operation waits or failed, in the words of an engineer, and what one can do."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Any, ClassVar, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubevnfm_kit.errors import NotFound
from kubevnfm_kit.printable import printable
from kubevnfm_lcm_api.lifecycle.core.granting import Granting
from kubevnfm_lcm_api.lifecycle.core.occurrence import OccurrenceRecord
from kubevnfm_lcm_api.lifecycle.core.plan import StepState
from kubevnfm_lcm_api.views.causes import Cause, Situation, cause_of, next_of
from kubevnfm_lcm_api.views.causes.finding import fitting
from kubevnfm_lcm_api.views.causes.rules import TABLE
from kubevnfm_lcm_api.views.causes.wording import LONGEST
from kubevnfm_lcm_api.views.vim_names import VimNames
from kubevnfm_sol.lcm import OperationState
from kubevnfm_sol.problem import ProblemDetails
from worlds.lcm_builders import NOW, a_cnf_draft, a_terminate_draft, an_instantiate_draft, an_operation, later
from worlds.lcm_moves import SAGA, granted
from worlds.reported_causes import CASES, Case

ROOT = "https://vnfm.example"
HREF = f"{ROOT}/vnflcm/v2/vnf_lcm_op_occs/op-1"
MACHINES = ("stack", "mgmt", "node", "host", "quota", "vim")


def running(*, is_of_machines: bool = True) -> OccurrenceRecord:
    """Return an instantiate whose first step runs."""
    record = granted(an_instantiate_draft() if is_of_machines else a_cnf_draft()).record
    facts = record.facts.model_copy(update={"vim_ids": ("vim-1",), "vnfd_id": "vnfd-1"})
    return record.model_copy(update={"facts": facts})


def failed(record: OccurrenceRecord, code: str, detail: str) -> OccurrenceRecord:
    """Return the operation after the failure of its running step."""
    step = record.running[0]
    problem = ProblemDetails(type=code, status=422, detail=f"{step.id}: {detail}")
    ended = step.model_copy(
        update={"state": StepState.FAILED, "error": problem, "ended_at": "2026-11-20T12:00:09.000Z"}
    )
    return record.with_steps([ended]).with_occ(operation_state=OperationState.FAILED_TEMP, error=problem)


def task(record: OccurrenceRecord, name: str, message: str, **more: Any) -> dict[str, Any]:
    """Return a task of the running step that has not ended."""
    step = record.running[0]
    known = {"step": step.id, "attempt": step.attempt, "node": "", "task": name, "state": "progressed"}
    return {**known, "message": message, "startedAt": "2026-11-20T12:00:04.000Z", **more}


def wait(record: OccurrenceRecord, code: str, reason: str) -> dict[str, Any]:
    """Return the task by which a worker reports that the command of the running step waits."""
    since = "2026-11-20T12:00:05.000Z"
    return task(record, "wait", f"waiting since {since}: {reason}", code=code, since=since, tries=3)


def cause(record: OccurrenceRecord, *tasks: dict[str, Any], **more: Any) -> Cause:
    """Return the cause of a state that has one."""
    found = cause_of(Situation(record, tasks, NOW, **more))
    assert found is not None
    return found


@pytest.mark.parametrize("case", CASES, ids=[each.name for each in CASES])
def test_a_report_becomes_the_sentence_of_an_engineer(case: Case) -> None:
    record = failed(running(is_of_machines=case.code.startswith(MACHINES)), case.code, case.report)
    found = cause(record)
    about = found.object
    place = f"{about.namespace}/" if about is not None and about.namespace else ""
    shown = "" if about is None else f"{about.kind} {place}{about.name}"
    assert (found.code, found.text, shown) == (case.slug, case.sentence, case.about)
    assert found.page == f"errors.md#{case.slug}"
    tasks = next_of(Situation(record, (), NOW), found, ROOT)
    assert sorted(each.task for each in tasks) == ["fail", "retry", "rollback"]
    (again,) = [each for each in tasks if each.task == "retry"]
    dos = {each.do for each in TABLE if each.slug == case.slug}
    assert again.text.partition(". Then: ")[0] in dos


@given(st.text(max_size=300), st.sampled_from(sorted({each.code for each in CASES})), st.sampled_from(CASES))
def test_any_text_gives_a_sentence_that_is_bounded(text: str, code: str, case: Case) -> None:
    for report in (text, f"{case.report} {text}", f"{text}: {case.report}"):
        found = cause(failed(running(), code, report))
        assert 0 < len(found.text) <= LONGEST
        assert printable(found.text) == found.text
        assert "\n" not in found.text
        assert found.object is None or len(found.object.name) <= 253


@pytest.mark.parametrize(
    "part",
    ["a", "a-", "/", 'image "', "ErrImagePull ", "0/1 nodes are available: ", "user a: ", "\n| x", "Aa a: ", "node a: ", "[ERROR ", "a: False ", "pod a: ", "https://a", "stack ", "; Aa a: ", "https://?)", "://a@"],
)  # fmt: skip
def test_a_hostile_text_takes_no_longer_than_others(part: str) -> None:
    """An error quotes what foreign programs say."""
    record = failed(running(), "mgmt-driver-failed", "x")
    began = time.process_time()
    for code in ("mgmt-driver-failed", "mgmt-script-failed", "objects-not-ready"):
        cause(failed(running(), code, (part * 4096)[:4000]))
    assert time.process_time() - began < 1.5
    assert record.running == ()


def test_the_error_of_the_failed_step_is_the_cause_and_retry_comes_first() -> None:
    record = failed(running(), "resource-busy", "VDU1 is\nbeing changed")
    found = cause(record)
    assert (found.code, found.text) == ("resource-busy", "VDU1 is being changed.")
    assert (found.step, found.since, found.isWait) == ("create_resources", "2026-11-20T12:00:09.000Z", False)
    tasks = next_of(Situation(record, (), NOW), found, ROOT)
    assert [each.task for each in tasks] == ["retry", "rollback", "fail"]
    assert tasks[0].href == f"{HREF}/retry"
    assert tasks[0].command == "kubevnfm retry op-1"
    assert '"Create the virtual resources"' in tasks[0].text


def test_what_is_said_of_one_object_explains_no_other() -> None:
    """One error names all objects that are not ready."""
    web = "Deployment default/web: 0 of 1 ready, pod web-1: container c: "
    db = "Deployment default/db: 0 of 1 ready, pod db-1: container c: "
    crashed = (
        "CrashLoopBackOff: back-off restarting failed container; it last ended with exit code 1: connection refused"
    )
    for report, sentence in (
        (f'{web}ErrImagePull: Failed to pull image "a:1": not found; {db}{crashed}', "The image a:1 cannot be pulled: the registry does not have it."),
        (f"{web}{crashed}; {db}Terminated: OOMKilled", "Container c of pod db-1 was killed: it needs more memory than its limit (OOMKilled)."),
    ):  # fmt: skip
        assert cause(failed(running(is_of_machines=False), "objects-not-ready", report)).text == sentence
    stack = "stack vnf-1: p (OS::Neutron::Port): Conflict: x; VDU1 (OS::Nova::Server): No valid host was found"
    about = cause(failed(running(), "stack-failed", stack)).object
    assert about is not None
    assert (about.kind, about.name) == ("Server", "VDU1")


@pytest.mark.parametrize(
    "address",
    ["https://mark:mark@mark@h/v3", f"http://h/{'a' * 90}?token=mark", f"h://h?{'x' * 1000}mark", f"http://h/http://{'x' * 250}mark:mark@h/"],
)  # fmt: skip
def test_no_sentence_shows_a_login_or_a_query_of_an_address(address: str) -> None:
    """Also where a quotation is cut in the middle of it; what a sentence says behind the address stays."""
    for code, text in (("resource-busy", f"({address}): is busy"), ("vim-refused", f"{'word ' * 22}{address}")):
        found = cause(failed(running(), code, text))
        assert "mark" not in found.text
        assert "x" * 9 not in found.text
    assert cause(failed(running(), "resource-busy", f"({address}): is busy")).text.endswith("): is busy.")


def test_a_cause_began_when_the_wait_named_it_and_not_when_the_wait_ended() -> None:
    """The detail of the error has what the progress has said before, and more."""
    waiting = running(is_of_machines=False)
    said = "Deployment default/web: 0 of 1 ready, pod web-1: container c: ImagePullBackOff: Back-off pulling image"
    report = task(waiting, "ready", said, obstacles=[said], saidAt="2026-11-20T12:00:06.000Z")
    record = failed(waiting, "objects-not-ready", f"{said}, Available False, MinimumReplicasUnavailable: x")
    assert cause(record, report).since == "2026-11-20T12:00:06.000Z"
    other = {**report, "obstacles": ["Service default/front: no load balancer address yet"], "message": ""}
    assert cause(record, other).since == "2026-11-20T12:00:09.000Z"


HEAT_TRIES_AGAIN = (
    'Heat tries again what has failed: 0: ResourceInError: resources[0]: Went to status ERROR due to "Message: No valid host'
    ' was found. , Code: 500"'
)


@pytest.mark.parametrize(
    ("code", "reason", "slug", "sentence"),
    [
        ("vim-unavailable", "Keystone (https://u:pw@keystone.example/v3?token=t): connection refused", "vim-away", 'Keystone of the VIM does not answer: "connection refused".'),
        ("service-unavailable", "infra-k8s does not answer (ClientConnectorError)", "service-away", "The service infra-k8s does not answer."),
        ("resource-busy", "VDU1 is being changed", "resource-busy", "VDU1 is being changed."),
        ("", "the graceful timeout of the request ends at 2026-11-20T12:09:00.000Z", "graceful-timeout", "The machines have time to end their work: the graceful timeout of the request ends at 2026-11-20T12:09:00.000Z."),
        ("", HEAT_TRIES_AGAIN, "no-valid-host", "Nova finds no compute host for the server: none has room for the flavor, or fits its zone and groups."),
        ("", "VDU1 is being changed", "waits", '"Delete the virtual resources" waits: "VDU1 is being changed".'),
    ],
)  # fmt: skip
def test_what_a_running_step_waits_for_is_the_cause_and_needs_no_task(
    code: str, reason: str, slug: str, sentence: str
) -> None:
    record = granted(a_terminate_draft()).record
    found = cause(record, wait(record, code, reason))
    assert (found.code, found.text) == (slug, sentence)
    assert (found.since, found.isWait, found.step) == ("2026-11-20T12:00:05.000Z", True, "delete_resources")
    tasks = next_of(Situation(record, (), NOW), found, ROOT)
    assert [each.task for each in tasks] == ["wait", "cancel"]
    assert tasks[0].text.endswith("the operation then goes on by itself.")
    ended = {**wait(record, code, reason), "state": "finished"}
    assert cause_of(Situation(record, (ended,), NOW)) is None


def test_an_object_that_stands_still_while_others_are_made_is_the_cause() -> None:
    record = running(is_of_machines=False)
    stuck = (
        'Deployment default/web: 0 of 1 ready, pod web-1: container web: ImagePullBackOff: Back-off pulling image "a:1"'
    )
    ready = task(record, "ready", "Service default/web: 1 of 2 ready", obstacles=[stuck, "Service default/db: x"])
    found = cause(record, ready)
    assert (found.code, found.isWait, found.since) == ("image-not-pulled", True, "2026-11-20T12:00:04.000Z")
    on_its_way = task(record, "ready", "Deployment default/web: 0 of 1 ready")
    assert cause_of(Situation(record, (on_its_way,), NOW)) is None


def test_a_machine_that_is_not_reached_yet_is_the_cause() -> None:
    record = running()
    message = "no SSH session with 10.0.0.5 port 22 yet: [Errno 111] Connect call failed ('10.0.0.5', 22)"
    found = cause(record, task(record, "reach", message, node="worker1", saidAt="2026-11-20T12:00:30.000Z"))
    assert (found.code, found.isWait, found.node) == ("ssh-not-listening", True, "worker1")
    assert found.text == "Machine worker1 refuses connections at 10.0.0.5 port 22: sshd does not listen there."
    assert found.since == "2026-11-20T12:00:30.000Z"


def test_the_reason_for_which_a_step_has_waited_is_deeper_than_its_deadline() -> None:
    record = running()
    waited = {**wait(record, "vim-unavailable", "Heat: no answer in time"), "state": "failed"}
    over = {**wait(record, "vim-unavailable", "Heat: no answer in time"), "state": "finished"}
    late = failed(record, "step-unanswered", "no answer within 3600 s; is its service running?")
    assert (
        cause(late).text == "The service infra-openstack has not answered for this step within 3600 s: is it running?"
    )
    assert cause(late, over).code == "service-away"
    assert cause(late, waited).text == 'Heat of the VIM does not answer: "no answer in time".'


def test_vims_and_packages_have_the_names_that_people_know() -> None:
    record = running()
    waiting = wait(record, "vim-unavailable", "Heat: no answer in time")
    about = cause(record, waiting, vim_names={"vim-1": "edge-1"}).object
    assert about is not None
    assert (about.kind, about.name, about.vimId, about.vimName) == ("Vim", "edge-1", "vim-1", "edge-1")
    of_server = failed(record, "stack-failed", "stack s: VDU1 (OS::Nova::Server): No valid host was found")
    about = cause(of_server, vim_names={"vim-1": "edge-1"}).object
    assert about is not None
    assert (about.kind, about.name, about.vimName) == ("Server", "VDU1", "edge-1")
    facts = record.facts.model_copy(update={"vnf_product_name": "Firewall"})
    about = cause(failed(record.model_copy(update={"facts": facts}), "stack-refused", "no")).object
    assert about is not None
    assert (about.kind, about.name) == ("Package", "Firewall (vnfd-1)")


async def test_a_vim_is_named_by_its_id_too_where_another_tenant_has_the_name() -> None:
    class Registered:
        names: ClassVar = {"vim-1": "edge", "vim-2": "edge", "vim-3": "core"}

        async def get(self, vim_id: str) -> dict[str, str]:
            if vim_id not in self.names:
                raise NotFound(vim_id)
            return {"name": self.names[vim_id]}

        async def list(self, filters: dict[str, list[str]]) -> list[str]:
            return [each for each in self.names.values() if each in filters["name"]]

    names = VimNames(cast("Any", Registered()))
    for _ in range(2):
        found = await names.by_id(["vim-1", "vim-3", "vim-4"])
        assert found == {"vim-1": "edge (vim-1)", "vim-3": "core"}


def test_a_step_that_takes_more_than_twice_its_usual_time_is_slow() -> None:
    record = running()
    usual = {"create_resources": 240.0}
    quick = Situation(record, (), later(470), usual_s=usual)
    assert cause_of(quick) is None
    slow = cause_of(Situation(record, (), later(720), usual_s=usual))
    assert slow is not None
    assert (slow.code, slow.isWait) == ("slow", True)
    assert slow.text == '"Create the virtual resources" runs for 12 min, and its earlier runs took 4 min.'


def test_the_nfvo_is_named_while_a_grant_is_awaited_and_after_its_refusal() -> None:
    def asked(**known: Any) -> OccurrenceRecord:
        granting = Granting(asked_at="2026-11-20T12:00:01.000Z", rests_until="2026-11-20T12:00:02.000Z", **known)
        return an_operation(an_instantiate_draft()).model_copy(update={"granting": granting})

    away = cause(asked(faults=2, last_fault="Cannot connect to host nfvo.example:443"))
    assert (away.code, away.isWait, away.since) == ("nfvo-away", True, "2026-11-20T12:00:01.000Z")
    assert cause(asked(grant_id="g1")).text == "The NFVO has not decided about the grant yet."
    problem = ProblemDetails(type="urn:nfvo:full", status=403, detail="the zone is full")
    refused = cause(SAGA.refuse(asked(), problem, NOW + timedelta(seconds=9)).record)
    assert (refused.code, refused.isWait) == ("grant-refused", False)
    assert refused.text == 'The NFVO refused the grant: "the zone is full".'
    late = ProblemDetails(type="grant-timeout", status=504, detail="the NFVO has not decided within 60 s")
    assert cause(SAGA.refuse(asked(), late, NOW).record).code == "nfvo-undecided"


def test_a_broker_that_is_away_is_the_cause_of_a_standstill() -> None:
    assert cause(running(), is_broker_away=True).code == "broker-away"
    rests = failed(running(), "stack-failed", "x")
    assert cause(rests, is_broker_away=True).code == "stack-failed"


def test_a_rollback_is_explained_by_what_stops_it_and_not_by_what_it_undoes() -> None:
    back = SAGA.rollback(failed(running(), "stack-failed", "x"), NOW).record
    assert cause_of(Situation(back, (), NOW)) is None
    assert [each.task for each in next_of(Situation(back, (), NOW), None, ROOT)] == ["wait", "cancel"]
    waits = cause(back, wait(back, "vim-unavailable", "Keystone (https://keystone.example/v3): connection refused"))
    assert (waits.code, waits.isWait) == ("vim-away", True)
    stopped = failed(back, "stack-not-deleted", "stack vnf-1: CP1 (OS::Neutron::Port): Conflict: in use")
    again = stopped.with_steps([stopped.steps[0].model_copy(update={"undo_failed": True})])
    found = cause(again)
    assert found.code == "stack-not-deleted"
    tasks = next_of(Situation(again, (), NOW), found, ROOT)
    assert [each.task for each in tasks] == ["rollback", "retry", "fail"]
    assert tasks[0].text == (
        'Remove what holds it in OpenStack. Then: Undo "Create the virtual resources", and end the operation as ROLLED_BACK: '
        "the instance is NOT_INSTANTIATED again."
    )


def test_an_operation_that_has_ended_has_nothing_to_do() -> None:
    record = running().with_occ(operation_state=OperationState.COMPLETED)
    assert cause_of(Situation(record, (), NOW)) is None
    assert next_of(Situation(record, (), NOW), None, ROOT) == ()
    ended = SAGA.fail(failed(running(), "vnfm-error", "x" * 4000), NOW).record
    assert next_of(Situation(ended, (), NOW), cause(ended), ROOT) == ()


def test_every_row_has_a_report_that_it_explains() -> None:
    found = (fitting(case.code, case.report, False) or fitting(case.code, case.report, True) for case in CASES)
    explained = {id(each[0]) for each in found if each is not None}
    left = [each for each in TABLE if id(each) not in explained]
    assert [each.slug for each in left] == ["slow"], "it needs the times of earlier runs"
    assert not [case.name for case in CASES if "(unknown)" in case.sentence]


def test_every_row_says_what_to_do_in_our_words() -> None:
    for each in TABLE:
        assert re.fullmatch(r"[a-z][a-z0-9-]+", each.slug)
        assert each.do[0].isupper()
        assert not each.do.endswith(".")
        assert "|" not in each.do
