"""Whatever answers at the gateway's URL, a command ends with one line and an exit code, and does its terminal no harm."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, cast

import pytest
from callers.command_line import Output, Ran, run_here
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubevnfm_cli.contexts import Context
from kubevnfm_cli.credentials import Authentication
from kubevnfm_cli.drawing import operation_lines, operation_text, verdict
from kubevnfm_cli.events import Event
from kubevnfm_cli.faults import Refused
from kubevnfm_cli.following import Lines
from kubevnfm_cli.gateway import Gateway
from kubevnfm_cli.lines import line_of, lines_so_far
from kubevnfm_cli.nouns import NOUNS
from kubevnfm_cli.output import table_text
from kubevnfm_cli.progress import Operation
from kubevnfm_cli.terminal import Screen
from kubevnfm_cli.trees import tree_text
from kubevnfm_cli.verbs import drift, top
from kubevnfm_cli.verbs.trace import trace_text

ID: Final = "00000000-0000-4000-8000-000000000000"
COMMANDS: Final = (
    ("get", "vnf"), ("get", "op", "-o", "wide"), ("get", "pkg", "-o", "csv"), ("get", "vim", ID), ("get", "vnf", ID, "-o", "name"),
    ("describe", "op", ID), ("describe", "vnf", ID), ("describe", "pkg", ID), ("why", ID), ("why", "vnf", "name"), ("trace", ID),
    ("wait", ID, "--timeout", "0s"), ("drift",), ("version",), ("doctor",), ("top",), ("heal", ID, "--dry-run"), ("terminate", ID), ("delete", "vim", "x"),
)  # fmt: skip


class Answers(ThreadingHTTPServer):
    """Answers every request with the same bytes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.body, self.headers = 200, b"", {"Content-Type": "application/json"}
        self.turns: list[tuple[int, bytes, dict[str, str]]] = []
        """The first answers, if they are others."""
        self.last_ids: list[str | None] = []
        """The last event that each request names."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        server = cast("Answers", self.server)
        server.last_ids.append(self.headers.get("Last-Event-ID"))
        if server.turns:
            server.status, server.body, server.headers = server.turns.pop(0)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response_only(server.status)
        for name, value in ({"Content-Length": str(len(server.body))} | server.headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(server.body)
        self.close_connection = "Content-Length" in server.headers

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    server = Answers()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def judged(server: Answers, words: tuple[str, ...], *, is_terminal: bool = True) -> Ran:
    environment = {"KUBEVNFM_URL": server.url, "NO_COLOR": "1", "TERM": "dumb", "PAGER": ""}
    ran = run_here(*words, environment=environment, is_terminal=is_terminal)
    assert ran.code in range(8)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", ran.out + ran.err), words
    if ran.code != 0 and not ran.out:
        assert ran.err.startswith("kubevnfm: ")
    return ran


NAMES: Final = st.sampled_from(
    ["id", "items", "steps", "nodes", "tasks", "name", "state", "cause", "next", "text", "warnings", "root", "children",
     "health", "step", "title", "error", "detail", "since", "startTime", "endTime", "startedAt", "endedAt", "estimate",
     "remainingS", "operation", "drift", "objects", "plan", "after", "object", "command", "count", "attempt", "kind", "sequence", "waits"]
)  # fmt: skip
VALUES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("a\x1b\x9b\u202e\n-:Z0129T", max_size=24),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=8),
    max_leaves=30,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(body=VALUES, words=st.sampled_from(COMMANDS))
def test_any_json_is_an_answer(answers: Answers, body: Any, words: tuple[str, ...]) -> None:
    answers.status, answers.body, answers.headers = 200, json.dumps(body).encode(), {}
    judged(answers, words)


WRONG: Final[tuple[Any, ...]] = (
    [],
    [[]],
    {},
    {"a": []},
    "x\x1b",
    "",
    True,
    None,
    -1,
    1e308,
    float("inf"),
    float("nan"),
    10**400,
)
"""Values of other types than an attribute has."""
TIME: Final = "2026-01-01T00:00:00Z"
CAUSE: Final = {"code": "c", "text": "t", "object": {"kind": "k", "name": "n"}, "since": TIME, "page": "p"}
TASK: Final = {
    "step": "s",
    "task": "wait",
    "state": "started",
    "message": "m",
    "done": 1,
    "total": 2,
    "since": TIME,
    "durationS": 1.5,
}
VIEW: Final[dict[str, Any]] = {
    "id": "i", "vnfInstanceId": "v", "vnfInstanceName": "n", "operation": "INSTANTIATE", "state": "PROCESSING", "startTime": TIME,
    "stateEnteredTime": TIME, "endTime": TIME, "cause": CAUSE, "next": [{"task": "t", "text": "x", "command": "kubevnfm wait i"}],
    "estimate": {"remainingS": 3}, "warnings": [{"text": "t", "field": "/f", "nearest": "n"}], "waits": [{"text": "t", "since": TIME}],
    "automatic": {"trigger": "alarm", "triggerId": "a", "reason": "r", "actionId": "x"},
    "steps": [
        {"name": "s", "title": "T", "state": "asked", "attempt": 2, "startedAt": TIME, "endedAt": TIME, "error": {"detail": "d"}},
        {"name": "f", "title": "F", "state": "failed", "error": {"detail": "d"}},
    ],
    "nodes": [{"name": "w", "tasks": [TASK]}], "tasks": [TASK], "error": {"detail": "d"},
}  # fmt: skip
EVENTS: Final = {
    "lcm.operation.changed": {"operation": "O", "state": "FAILED", "error": {"detail": "d"}, "state_entered_time": TIME},
    "lcm.step.changed": {"step": "s", "title": "T", "state": "failed", "attempt": 2, "number": 1, "of": 2, "duration_s": 1.0, "detail": "d"},
    "mgmt.task.progressed": {"node": "w", "task": "wait", "state": "started", "message": "m", "done": 1, "total": 2, "duration_s": 1.0, "since": TIME},
}  # fmt: skip
CAPACITY: Final = {
    "nodes": 1, "nodesReady": 1, "cpu": 1.5, "memoryBytes": 1, "quotas": [{"name": "cores", "used": 1, "limit": 2}],
}  # fmt: skip
ROW: Final[dict[str, Any]] = {
    "id": "i", "name": "n", "state": "READY", "health": "ok", "operation": {"operation": "o", "state": "s"}, "createdAt": TIME, "text": "t",
    "vimIds": ["v"], "steps": {"done": 1, "total": 2, "current": ["s"]}, "cause": CAUSE, "capacity": CAPACITY, "credentialsEnd": {"daysLeft": 1},
    "failure": {"text": "t"}, "filter": {"notificationTypes": ["x"]}, "startTime": TIME, "in_use_by": ["x"], "estimate": {"remainingS": 3},
}  # fmt: skip
NODE: Final[dict[str, Any]] = {
    "kind": "server", "type": "OS::Nova::Server", "name": "n" * 60, "state": "s", "health": "problem", "text": "t", "since": TIME, "count": 3,
    "addresses": ["a"], "place": "p", "nodeState": "Ready", "role": "r", "drift": {"reason": "r"},
}  # fmt: skip
SPAN: Final = {
    "traceId": "t", "spanId": "s", "parentSpanId": "p", "name": "n", "startTimeUnixNano": "1", "endTimeUnixNano": "2", "status": {"code": 2},
    "attributes": [{"key": "kubevnfm.step.id", "value": {"stringValue": "s"}}, {"key": "error.type", "value": {"stringValue": "e"}}],
}  # fmt: skip
TRACE: Final = {"resourceSpans": [{"scopeSpans": [{"spans": [SPAN, {**SPAN, "spanId": "c", "parentSpanId": "s"}]}]}]}


def changed(value: Any) -> Iterator[Any]:
    """Yield the value with each part of it in turn replaced by each wrong value, or removed."""
    yield from WRONG
    if isinstance(value, dict):
        for name, inner in value.items():
            yield {key: one for key, one in value.items() if key != name}
            yield from ({**value, name: one} for one in changed(inner))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from ([*value[:place], one, *value[place + 1 :]] for one in changed(inner))


def screen() -> Screen:
    return Screen(Output(is_terminal=True), {"NO_COLOR": "1"})


def drawn(view: dict[str, Any]) -> str:
    operation = Operation(view)
    texts = [operation_text(screen(), operation), *operation_lines(screen(), operation, is_whole=False, room=10)]
    return "\n".join([*texts, *verdict(screen(), operation), *lines_so_far(operation)])


def test_a_view_of_any_shape_is_drawn() -> None:
    count = 0
    for view in changed(VIEW):
        if isinstance(view, dict):
            count += 1
            shown = drawn(view)
            assert "\x1b" not in shown
            Lines(lambda line: None, lambda line: None).begin(Operation(view))
    assert count > 500


@pytest.mark.parametrize("kind", EVENTS)
def test_an_event_of_any_shape_is_shown(kind: str) -> None:
    for data in changed(EVENTS[kind]):
        operation = Operation(VIEW)
        event = Event({"type": f"kubevnfm.{kind}.v1", "time": data, "stepid": data, "data": data})
        show = Lines(lambda line: None, lambda line: None)
        show.begin(operation)
        operation.apply(event)
        show.event(event, operation)
        assert "\x1b" not in drawn(operation.view)
        assert "\x1b" not in str(line_of(event))


def test_rows_and_trees_of_any_shape_are_drawn() -> None:
    tables = (*(noun.table.columns for noun in NOUNS), top.OPERATIONS, top.VIMS, drift.TABLE.columns)
    for row in changed(ROW):
        for columns in tables if isinstance(row, dict) else ():
            assert "\x1b" not in table_text(screen(), [row], columns, is_wide=True)
    for node in changed(NODE):
        root = node if isinstance(node, dict) else {"children": node}
        assert "\x1b" not in tree_text(screen(), {**root, "children": [node, NODE]})
    for trace in changed(TRACE):
        assert "\x1b" not in trace_text(screen(), trace if isinstance(trace, dict) else {})


@pytest.mark.parametrize(
    ("status", "body", "headers", "code", "said"),
    [
        (200, b"[" * 100_000 + b"]" * 100_000, {}, 1, "JSON expected"),
        (200, b"<html>login</html>", {}, 1, "JSON expected"),
        (200, b"\xff\xfe", {}, 1, "JSON expected"),
        (200, b'{"items": [', {"Content-Length": "99"}, 7, "IncompleteRead"),
        (302, b"", {"Location": "http://127.0.0.1:1/elsewhere"}, 1, "302: "),
        (400, b'{"detail": "a\\u001b[31m\\nb"}', {}, 1, r"400: a\x1b[31m\nb"),
        (401, b'{"title": "Unauthorized"}', {}, 4, "401: Unauthorized"),
        (403, b"", {}, 4, "403: "),
        (409, b'{"TackerError": {"message": "in use"}}', {}, 6, "409: in use"),
        (412, b'{"detail": ["x"]}', {}, 6, "412: "),
        (500, b"<html>\x1b</html>", {}, 1, "500: "),
        (502, b"Bad gateway", {}, 7, "502: Bad gateway"),
    ],
)  # fmt: skip
def test_refusals_and_broken_answers(
    answers: Answers, status: int, body: bytes, headers: dict[str, str], code: int, said: str
) -> None:
    answers.status, answers.body, answers.headers = status, body, headers
    ran = judged(answers, ("get", "vnf"))
    assert (ran.code, said in ran.err, ran.out) == (code, True, ""), ran
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words", [("get", "vnf", "\udcff"), ("describe", "vnf", "a\udc80"), ("get", "vnf", "--where", "a=\udcff")]
)
def test_words_that_are_no_text_are_wrong_usage(words: tuple[str, ...]) -> None:
    ran = run_here(*words, environment={"KUBEVNFM_URL": "http://127.0.0.1:1"})
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1), ran


def test_pages_without_end_have_one(answers: Answers) -> None:
    answers.status, answers.body = 200, b'{"items": [{"id": "x"}]}'
    answers.headers = {"Link": '</kubevnfm/v1/operations?m=1>; rel="next"'}
    ran = judged(answers, ("get", "op", "--limit", "20", "-o", "name"))
    assert (ran.code, len(ran.out.splitlines())) == (0, 20)
    assert "more than 20" in ran.err


def test_a_page_is_read_again_if_the_connection_was_closed_meanwhile(answers: Answers) -> None:
    page = b'{"items": [{"id": "a"}]}'
    # With a length of its own, the connection is closed without notice.
    closing = {"Link": '</kubevnfm/v1/operations?m=1>; rel="next"', "Content-Length": str(len(page))}
    answers.turns = [(200, page, closing), (200, page.replace(b'"a"', b'"b"'), {})]
    ran = judged(answers, ("get", "op", "-o", "name"))
    assert (ran.code, ran.out) == (0, "op/a\nop/b\n"), ran


def test_a_token_is_read_again_once_it_has_expired(answers: Answers, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(0o600)
    credentials = Authentication(Context(answers.url, token_file=str(file)), {})
    gateway = Gateway(answers.url, credentials)

    def read(path: str) -> None:
        assert gateway.get(path).object() == {}

    def streamed(path: str) -> None:
        with gateway.stream(path) as lines:
            assert list(lines) == [b"{}"]

    for number, ask in enumerate((read, streamed)):
        file.write_text(f"old{number}")
        credentials.renew()
        file.write_text(f"new{number}")
        answers.turns = [(401, b"", {}), (200, b"{}", {})]
        ask("/")
        assert credentials.headers() == {"Authorization": f"Bearer new{number}"}
        answers.turns = [(401, b"", {}), (401, b"", {})]
        with pytest.raises(Refused, match=r"^401: "):
            ask("/")
        # The same token is not sent again.
        assert len(answers.turns) == 1


TWICE: Final = json.dumps(
    {"id": "1", "type": "kubevnfm.mgmt.task.progressed.v1", "time": TIME, "data": EVENTS["mgmt.task.progressed"]}
)
HEARTBEAT: Final = (
    200,
    f": connected\n\ndata: {TWICE}\n\ndata: {TWICE}\n\n: alive\n\n".encode(),
    {"Content-Type": "text/event-stream"},
)
MISSED: Final = (200, b": connected\n\nevent: missed\n\n", {"Content-Type": "text/event-stream"})


@pytest.mark.parametrize(
    ("streams", "troubles"),
    [
        ([HEARTBEAT], []),
        ([MISSED], []),
        ([(503, b"", {}), HEARTBEAT], ["connection lost: 503: /kubevnfm/v1/events was refused", "connected again"]),
    ],
)
def test_a_wait_reads_the_state_again_when_events_may_be_missing(
    streams: list[tuple[int, bytes, dict[str, str]]], troubles: list[str], answers: Answers
) -> None:
    begun, ended = ({"id": ID, "operation": "HEAL", "state": state} for state in ("PROCESSING", "COMPLETED"))
    answers.turns = [(200, json.dumps(begun).encode(), {}), *streams, (200, json.dumps(ended).encode(), {})]
    ran = judged(answers, ("wait", "op", ID, "--timeout", "20s"), is_terminal=False)
    assert (ran.code, ran.out.count(" w: waits: m\n")) == (0, int(HEARTBEAT in streams)), ran
    assert [line.partition(" ")[2].partition(";")[0] for line in ran.err.splitlines()] == troubles


@pytest.mark.parametrize(("state", "code"), [("COMPLETED", 0), ("PROCESSING", 7)])
def test_a_log_that_breaks_off_while_the_operation_goes_on_is_said_to(
    state: str, code: int, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The empty lines that the gateway sends after a silence are not shown."""
    monkeypatch.setattr("kubevnfm_cli.verbs.logs._SILENCE_S", -1.0)
    log = (200, b"a\n\nb\x1b\n", {"Content-Type": "text/plain"})
    answers.turns = [log, (200, json.dumps({"id": ID, "state": state}).encode(), {})]
    ran = judged(answers, ("logs", "op", ID, "-f"))
    assert (ran.code, ran.out, "the log broke off" in ran.err) == (code, "a\nb\\x1b\n", code == 7)


def test_drift_is_found_behind_other_problems(answers: Answers) -> None:
    others = json.dumps({"items": [{"id": "a", "health": "problem"}]}).encode()
    drifted = json.dumps({"items": [{"id": one, "drift": {"state": "s"}} for one in "bc"]}).encode()
    answers.turns = [(200, others, {"Link": '</kubevnfm/v1/instances?m=1>; rel="next"'}), (200, drifted, {})]
    ran = judged(answers, ("drift", "--limit", "1", "-o", "name"))
    assert (ran.code, ran.out, "there are 2" in ran.err) == (0, "vnf/b\n", True)


def test_a_clock_without_a_zone_is_one_of_utc(answers: Answers) -> None:
    answers.status, answers.body, answers.headers = 200, b"{}", {"Date": "Thu, 01 Jan 2026 00:00:00 -0000"}
    assert re.search(r"fail  clock: differs by \d+ s", judged(answers, ("doctor",)).out)


def test_a_gateway_that_goes_away_behind_its_acceptance_is_waited_for(answers: Answers) -> None:
    ended = json.dumps({"id": ID, "operation": "HEAL", "state": "COMPLETED"}).encode()
    answers.turns = [(202, b"", {"Location": f"/vnflcm/v2/vnf_lcm_op_occs/{ID}"}), (503, b"", {}), (200, ended, {})]
    ran = judged(answers, ("heal", ID, "--timeout", "60s"), is_terminal=False)
    assert (ran.code, "the operation is not affected" in ran.err, "connected again" in ran.err) == (0, True, True), ran


def test_the_time_of_a_wait_ends_at_a_gateway_that_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = run_here("wait", ID, "--timeout", "0s", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")
    assert (ran.code, ran.out) == (3, "")


def test_an_upload_whose_checks_take_too_long_says_how_to_see_their_end(answers: Answers, tmp_path: Path) -> None:
    archive = tmp_path / "web.zip"
    archive.write_bytes(b"PK")
    answers.status, answers.headers = 200, {}
    answers.body = json.dumps({"id": ID, "onboardingState": "PROCESSING"}).encode()
    words = ("upload", str(archive), "--timeout", "0.2s", "--url", answers.url)
    ran = run_here(*words, is_terminal=True)
    assert (ran.code, f"kubevnfm get pkg {ID} shows its state" in ran.err) == (3, True), ran
    assert ran.err.count("100% of 2 B\n") == 1


def test_events_are_shown_until_the_time_is_over(answers: Answers) -> None:
    said = {"id": "1", "type": "kubevnfm.lcm.operation.changed.v1", "time": TIME, "subject": ID}
    event = {**said, "data": EVENTS["lcm.operation.changed"]}
    stream = f": connected\n\nid: 7\ndata: {json.dumps(event)}\n\nevent: missed\n\n"
    answers.status, answers.body, answers.headers = 200, stream.encode(), {"Content-Type": "text/event-stream"}
    ran = judged(answers, ("events", "--timeout", "0.2s"), is_terminal=False)
    assert (ran.code, ran.out) == (0, f"2026-01-01T00:00:00.000Z [{ID[:8]}] O FAILED: d\n")
    assert [line.partition(":")[0] for line in ran.err.splitlines()] == [
        "events may be missing here",
        "connection lost",
    ]
    answers.turns, answers.last_ids = [(200, stream.encode(), answers.headers), (403, b"", {})], []
    ran = judged(answers, ("events", "--timeout", "60s", "-o", "jsonl"), is_terminal=False)
    assert (ran.code, json.loads(ran.out)) == (4, event)
    # It goes on behind the last event that was shown.
    assert answers.last_ids == [None, "7"]


def test_a_request_that_may_have_arrived_is_said_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            server.accept()[0].close()

        hanging_up = threading.Thread(target=hang_up)
        hanging_up.start()
        ran = run_here("heal", ID, "--url", f"http://127.0.0.1:{server.getsockname()[1]}")
        hanging_up.join()
    assert (ran.code, "whether the gateway has carried out the POST is not known" in ran.err) == (7, True), ran


def test_programs_get_the_whole_list_and_people_its_begin(answers: Answers) -> None:
    page = json.dumps({"items": [{"id": f"{number:08x}"} for number in range(1000)]}).encode()
    following = {"Link": '</kubevnfm/v1/operations?m=1>; rel="next"'}
    answers.turns = [(200, page, following)] * 9 + [(200, page, {})]
    assert len(judged(answers, ("get", "op", "-o", "name"), is_terminal=False).out.splitlines()) == 10_000
    answers.turns = [(200, page, following)]
    shown = judged(answers, ("get", "op"), is_terminal=False)
    assert (len(shown.out.splitlines()), "more than 1000" in shown.err) == (1001, True)
