"""``make bench-page``: the web page in Debian's Chromium on a real gateway with many and large things; each figure with its goal.

python tests/bench/page.py [--strict] [--only PART ...] [--day-events N]: the exit code is 0 whatever the figures are; with ``--strict`` 1 if one misses its goal.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import platform
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from kubevnfm.client import GatewayClient
from kubevnfm.demo import lab, openstack_vim

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

import page_gateway  # noqa: E402
from figures import Figure, say  # noqa: E402
from load import Load, body  # noqa: E402
from page_store import EVENTS, INSTANCES, NODES, OBJECTS, PROBLEMS, TASKS, Filled, fill  # noqa: E402
from servers.ports import free_port  # noqa: E402
from targets import until_ready  # noqa: E402

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Page

CHROMIUM: Final = "/usr/bin/chromium"
BUILT: Final = HERE.parents[1] / "services/lcm-api/kubevnfm_lcm_api/page/built"
MARKERS: Final = 300
VNFS: Final = 25
DAY_EVENTS: Final = 200_000
ROUNDS: Final = 40
"""Changes of the view while a day passes; the gateway is killed at each tenth."""


class Gateway:
    """The gateway of the bench, which can be killed and started again."""

    def __init__(self, folder: Path, endpoints: Mapping[str, Any]) -> None:
        self.data_dir = folder / "data"
        self._port, self._control = free_port(), free_port()
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KUBEVNFM_")},
            page_gateway.PORT: str(self._control),
            "KUBEVNFM_PORT": str(self._port),
            "KUBEVNFM_DATA_DIR": str(self.data_dir),
            "KUBEVNFM_SSH_PORT": str(endpoints["ssh_port"]),
            "KUBEVNFM_TRUST_PACKAGES": "true",
            "KUBEVNFM_ALLOWED_NETWORKS": "127.0.0.0/8",
            "KUBEVNFM_VNF_NETWORKS": "127.0.0.0/8",
            "KUBEVNFM_RATE_LIMIT_PER_S": "0",
            # The copies do not exist, and should not be found missing.
            "KUBEVNFM_DRIFT_EVERY_S": "0",
            "KUBEVNFM_LOG_LEVEL": "WARNING",
            "KUBEVNFM_CONFIG": os.devnull,
        }
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Return when it is ready."""
        program = str(HERE / "page_gateway.py")
        self._process = await asyncio.create_subprocess_exec(sys.executable, program, env=self._environment)
        await until_ready(self.url)

    async def stop(self, sent: signal.Signals = signal.SIGTERM) -> None:
        """End it: SIGKILL as a power cut would."""
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(sent)
        await self._process.wait()

    async def publish(self, events: Sequence[Mapping[str, Any]], *, every_ms: float = 0) -> None:
        """Have it publish events; return when its consumers have taken them."""
        async with aiohttp.ClientSession() as session:
            sent = {"events": events, "everyMs": every_ms}
            async with session.post(f"http://127.0.0.1:{self._control}/events", json=sent) as answer:
                answer.raise_for_status()


@dataclass
class Bench:
    """The gateway and the browser of all figures."""

    gateway: Gateway
    made: Filled
    browser: Browser
    vnfd_id: str
    events: int
    """Those of a day."""

    @asynccontextmanager
    async def tab(self, path: str) -> AsyncIterator[tuple[Page, CDPSession]]:
        """Yield a new tab that shows a place."""
        context = await self.browser.new_context(viewport={"width": 1280, "height": 900})
        context.set_default_timeout(120_000)
        try:
            page = await context.new_page()
            await page.add_init_script((HERE / "page_measures.js").read_text())
            await page.goto(f"{self.gateway.url}/ui/{path}")
            # It is the view's own heading: the other views are read ahead a second later.
            await page.locator("h1").wait_for()
            yield page, await context.new_cdp_session(page)
        finally:
            await context.close()


async def heap_mib(cdp: CDPSession) -> float:
    """Return the heap of the page after a collection."""
    await cdp.send("HeapProfiler.collectGarbage")
    return float((await cdp.send("Runtime.getHeapUsage"))["usedSize"]) / 2**20


async def dom_nodes(cdp: CDPSession) -> float:
    """Return the number of nodes, those outside the document included, after a collection."""
    await cdp.send("HeapProfiler.collectGarbage")
    return float((await cdp.send("Memory.getDOMCounters"))["nodes"])


async def clicked(page: Page, click: str, until: str, *, text: str = "") -> dict[str, float]:
    """Click, and return the ms until something is painted (``ms``), the longest time without a frame, and that of the last request."""
    measured: dict[str, float] = await page.evaluate("args => measures.clicked(...args)", [click, until, text])
    return measured


async def first_load(bench: Bench) -> list[Figure]:
    """Measure the bytes: those that a first load takes over the wire, and all that was built."""
    context = await bench.browser.new_context()
    page, taken = await context.new_page(), dict[str, int]()

    async def add(name: str, answer: Any) -> None:
        taken[name] = len(gzip.compress(await answer.body(), 9))

    waiting: list[asyncio.Task[None]] = []
    page.on(
        "response",
        lambda answer: waiting.append(asyncio.create_task(add(answer.url, answer))) if "/ui" in answer.url else None,
    )
    await page.goto(f"{bench.gateway.url}/ui/")
    await page.locator("h1").wait_for()
    first = [*waiting]
    await asyncio.gather(*first)
    loaded = sum(taken.values())
    await context.close()
    files = [each for each in BUILT.rglob("*") if each.suffix in {".css", ".html", ".js", ".svg"}]
    everything = sum(len(gzip.compress(each.read_bytes(), 9)) for each in files)
    return [
        Figure("first load, gzip", "KB", [loaded / 1000], 60),
        Figure(f"all {len(files)} files, gzip", "KB", [everything / 1000], 200),
    ]


def _p95(samples: Sequence[float]) -> float:
    return sorted(samples)[int(len(samples) * 0.95)]


async def drawn(bench: Bench) -> list[Figure]:
    """Measure events until the document has them: messages of a large operation among others, and real operations in the list."""
    made = bench.made
    async with bench.tab(f"operations/{made.timeline}?row=task%20worker-9%20{made.step}%20marker") as (page, _):
        await page.get_by_role("listbox").wait_for()
        await page.evaluate("measures.markers()")
        events: list[dict[str, Any]] = []
        for number in range(MARKERS):
            events.append(_task(made, "worker-9", "marker", f"marker {number} {{now}} end"))
            events += [
                _task(made, f"worker-{(number * 7 + other) % NODES}", "join-9", f"{number}") for other in range(3)
            ]
            events.append(_step(made, made.open[number % len(made.open)]))
        await bench.gateway.publish(events, every_ms=20)
        await page.get_by_text(f"marker {MARKERS - 1} ").wait_for()
        messages: list[float] = await page.evaluate(f"measures.drawnMarkers({MARKERS})")
    listed = await _listed(bench)
    return [
        Figure(f"event of an operation of {NODES} nodes until drawn", "ms", messages),
        Figure("the 95th percentile of it", "ms", [_p95(messages)], 250),
        Figure("event of a real operation until drawn in the list", "ms", listed),
        Figure("the 95th percentile of it", "ms", [_p95(listed)], 250),
    ]


async def _listed(bench: Bench) -> list[float]:
    """Run real operations one after the other, and return for each event the ms from its time until the list has it or a later one."""
    seen: list[tuple[str, int, float]] = []
    async with bench.tab("operations") as (page, _), Load(bench.gateway.url) as load:
        await page.get_by_role("row").nth(1).wait_for()
        await page.evaluate("measures.rows()")
        async with (
            aiohttp.ClientSession() as session,
            session.get(
                f"{bench.gateway.url}/kubevnfm/v1/events?type=lcm.operation.changed,lcm.step.changed",
                timeout=aiohttp.ClientTimeout(total=None),
            ) as stream,
        ):
            listening = asyncio.create_task(_hear(stream, seen))
            for one in [await load.create(bench.vnfd_id, f"drawn-{number}") for number in range(VNFS)]:
                await load.operate([one], "instantiate", body("vm", "instantiate"))
                await load.operate([one], "terminate", {"terminationType": "FORCEFUL"})
            await asyncio.sleep(2)
            listening.cancel()
        shown: dict[str, list[list[float]]] = await page.evaluate("measures.rowsSeen()")
    taken = []
    for operation, rank, happened in seen:
        at = next((time for reached, time in shown.get(operation, []) if reached >= rank), None)
        assert at is not None, f"the list has never shown {rank} of {operation}: {shown.get(operation)}"
        taken.append(max(0.0, at - happened))
    return taken


async def _hear(stream: aiohttp.ClientResponse, seen: list[tuple[str, int, float]]) -> None:
    async for line in stream.content:
        if not line.startswith(b"data: "):
            continue
        event = json.loads(line[6:])
        data, at = event.get("data", {}), event.get("time")
        state = data.get("state")
        if at is None or state in {"started", None}:
            continue
        # As `measures.rows` reads a row: the steps that are done, and behind all of them the end.
        rank = 1000 if state in {"COMPLETED", "FAILED", "ROLLED_BACK"} else data.get("done") or 0
        seen.append((event["operationid"], rank, datetime.fromisoformat(at).timestamp() * 1000))


def _task(made: Filled, node: str, task: str, message: str, state: str = "progressed") -> dict[str, Any]:
    data = {"node": node, "task": task, "state": state, "message": message}
    return {"kind": "task", "instance": made.instance, "operation": made.timeline, "step": made.step, "data": data}


def _step(made: Filled, operation: str) -> dict[str, Any]:
    data = {
        "vnf_lcm_op_occ_id": operation,
        "step": made.step,
        "title": "A step",
        "state": "started",
        "number": 5,
        "of": 9,
        "done": 4,
    }
    return {"kind": "step", "instance": made.instance, "operation": operation, "step": made.step, "data": data}


async def timeline(bench: Bench) -> list[Figure]:
    """Measure a large timeline: until it is there, frames while it scrolls and events come in, and the heap."""
    made, name = bench.made, f"timeline of {NODES} nodes with {TASKS} tasks, {EVENTS} events"
    async with bench.tab("operations?state=FAILED") as (page, cdp):
        begun = await page.evaluate(
            "path => measures.opened(path, '[role=listbox] [role=option]')", f"/ui/operations/{made.timeline}"
        )
        box = page.get_by_role("listbox")
        await box.wait_for()
        events = [_task(made, f"worker-{number % NODES}", "join-9", f"{number}") for number in range(500)]
        coming = asyncio.create_task(bench.gateway.publish(events, every_ms=20))
        scrolled: dict[str, Any] = await page.evaluate("measures.scrolled('[role=listbox]', 10000)")
        await coming
        heap = await heap_mib(cdp)
    return [
        Figure(f"{name}: shown", "ms", [begun["ms"]]),
        Figure("scrolled, with 50 events a second", "frames/s", [scrolled["framesPerS"]], 50, "more"),
        Figure("the longest time between two frames", "ms", [scrolled["longest"]]),
        Figure("the largest heap while it scrolls", "MiB", [scrolled["heapMib"]], 150),
        Figure("heap after a collection", "MiB", [heap], 150),
    ]


async def plan(bench: Bench) -> list[Figure]:
    """Measure the graph of a large plan: grouped, as it opens, and each step by itself."""
    async with bench.tab(f"operations/{bench.made.plan}") as (page, _):
        await page.get_by_role("listbox").wait_for()
        grouped = await clicked(page, "button", "svg rect", text="Show the plan")
        each = await clicked(page, "button", "svg g:nth-of-type(30) rect", text="Show each of")
        scrolled: dict[str, Any] = await page.evaluate("measures.scrolled('.graph', 4000)")
    name = f"plan of {NODES * TASKS} steps"
    return [
        Figure(f"{name}, equal ones grouped: shown", "ms", [grouped["ms"]], 1000),
        Figure("the longest time without a frame", "ms", [grouped["longest"]], 200),
        Figure(f"{name}, each by itself: shown", "ms", [each["ms"]], 1000),
        Figure("the longest time without a frame", "ms", [each["longest"]], 500),
        Figure("scrolled", "frames/s", [scrolled["framesPerS"]], 50, "more"),
    ]


async def tree(bench: Bench) -> list[Figure]:
    """Measure trees of many objects, from the address until the browser has painted them."""
    figures = []
    for instance, problems in ((bench.made.tree, PROBLEMS), (bench.made.quiet_tree, 0)):
        taken, read = [], []
        async with bench.tab("vims") as (page, _):
            for _ in range(7):
                measured = await page.evaluate(
                    "path => measures.opened(path, 'details details li')", f"/ui/instances/{instance}"
                )
                taken.append(measured["ms"])
                read.append(measured["readMs"])
                if problems:
                    left = await page.get_by_text(re.compile(r"with a problem")).first.inner_text()
                    assert str(problems - 200) in left, f"a problem is hidden: {left}"
                await page.evaluate("measures.opened('/ui/vims', 'table')")
        name = f"tree of {OBJECTS} objects, {problems or 'none'} with a problem"
        figures += [
            Figure(f"{name}: painted", "ms", taken, 500),
            Figure("of that the answer of the gateway", "ms", read),
        ]
    return figures


async def paged(bench: Bench) -> list[Figure]:
    """Measure pages of a long list."""
    async with bench.tab("vims") as (page, _):
        first, following = [], []
        for _ in range(10):
            first.append((await clicked(page, "nav a", "tbody tr:nth-child(50)", text="Instances"))["ms"])
            for _ in range(3):
                following += [(await page.evaluate("measures.nextPage()"))["ms"]]
            await clicked(page, "nav a", "table", text="VIMs")
    return [
        Figure(f"first page of {INSTANCES} instances, painted", "ms", first, 300),
        Figure("its next page", "ms", following, 300),
    ]


async def day(bench: Bench) -> list[Figure]:
    """Have many events happen while the view changes again and again and the gateway is killed now and then."""
    made = bench.made
    places = [
        ("Operations", f"/ui/operations/{made.timeline}", "[role=listbox] [role=option]"),
        ("Operations", f"/ui/operations/{made.plan}?as=plan", "svg rect"),
        ("Instances", f"/ui/instances/{made.tree}", "details li"),
        ("VIMs", "/ui/instances", "tbody tr"),
        ("Packages", "/ui/operations", "tbody tr"),
    ]
    async with bench.tab("operations") as (page, cdp):

        async def visit(place: int) -> None:
            title, path, there = places[place % len(places)]
            await page.evaluate("path => measures.opened(path, '[role=listbox] [role=option], h1')", path)
            await page.locator(there).first.wait_for()
            await page.get_by_role("link", name=title, exact=True).first.click()

        async def rested() -> tuple[float, float]:
            await page.evaluate("measures.opened('/ui/vims', 'table')")
            await asyncio.sleep(3)
            return await heap_mib(cdp), await dom_nodes(cdp)

        for place in range(2 * len(places)):
            await visit(place)
        before = await rested()
        per_round, visits = bench.events // ROUNDS, 0
        for turn in range(ROUNDS):
            if turn % 10 == 9:
                await bench.gateway.stop(signal.SIGKILL)
                await page.get_by_text("The connection to the gateway is lost.").wait_for()
                await bench.gateway.start()
                await page.get_by_text("The connection to the gateway is lost.").wait_for(state="hidden")
            flood = asyncio.create_task(_flood(bench, turn, per_round))
            while not flood.done():
                await visit(visits)
                visits += 1
                await asyncio.sleep(0.3)
            await flood
        after = await rested()
    return [
        Figure("heap after the first views", "MiB", [before[0]]),
        Figure(
            f"heap after {bench.events} events, {ROUNDS // 10} deaths of the gateway",
            "MiB",
            [after[0]],
            before[0] * 1.1 + 1,
        ),
        Figure("DOM nodes after the first views", "", [before[1]]),
        Figure("DOM nodes at the end", "", [after[1]], before[1] * 1.1 + 50),
    ]


async def _flood(bench: Bench, turn: int, count: int) -> None:
    made, size = bench.made, 250
    for first in range(0, count, size):
        events = [
            _task(made, f"worker-{number % NODES}", "join-9", f"{turn} {number}")
            if number % 25 == 0
            else _step(made, made.open[number % len(made.open)] if number % 2 else made.timeline)
            for number in range(first, first + size)
        ]
        await bench.gateway.publish(events)


async def hidden(bench: Bench) -> list[Figure]:
    """Measure what a hidden tab does, and how fast it is right again."""
    made = bench.made
    async with bench.tab(f"operations/{made.timeline}?row=task%20worker-9%20{made.step}%20marker") as (page, cdp):
        await page.get_by_role("listbox").wait_for()
        await page.evaluate("measures.hide(true)")
        await asyncio.sleep(12)
        before, sent = await _busy_s(cdp), list[str]()
        page.on("request", lambda request: sent.append(request.url))
        events = [_task(made, f"worker-{number % NODES}", "join-9", f"{number}") for number in range(500)]
        await bench.gateway.publish([*events, _task(made, "worker-9", "marker", "hidden marker")], every_ms=20)
        busy, while_hidden = await _busy_s(cdp) - before, len(sent)
        shown = await page.evaluate("measures.shownAfterHiding('hidden marker')")
    return [
        Figure("hidden tab: requests in 10 s with 500 events", "", [while_hidden], 0),
        Figure("processor time of it", "ms", [busy * 1000], 100),
        Figure("seen again, until it has what happened", "ms", [shown], 1000),
    ]


async def _busy_s(cdp: CDPSession) -> float:
    await cdp.send("Performance.enable")
    found = {each["name"]: each["value"] for each in (await cdp.send("Performance.getMetrics"))["metrics"]}
    return float(found["TaskDuration"])


PARTS: Final[Mapping[str, Callable[[Bench], Awaitable[list[Figure]]]]] = {
    "load": first_load,
    "drawn": drawn,
    "timeline": timeline,
    "plan": plan,
    "tree": tree,
    "paged": paged,
    "hidden": hidden,
    "day": day,
}


async def measure(chosen: Sequence[str], samples: Path, events: int) -> bool:
    """Print the figures; return whether all goals are met."""
    from playwright.async_api import async_playwright

    met = True
    with tempfile.TemporaryDirectory(prefix="kubevnfm-bench-") as folder:
        async with lab(0.0) as endpoints:
            gateway = Gateway(Path(folder), endpoints)
            await gateway.start()
            try:
                vnfd_id, operation, cnf = await _models(gateway, endpoints, samples)
                await gateway.stop()
                say("filling the store")
                made = await fill(gateway.data_dir, operation=operation, cnf=cnf)
                await gateway.start()
                async with async_playwright() as playwright:
                    browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                    say(
                        f"\nthe page, Chromium {browser.version}, {os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}"
                    )
                    for name in chosen:
                        for figure in await PARTS[name](Bench(gateway, made, browser, vnfd_id, events)):
                            say(figure.line())
                            met = met and figure.meets_goal
            finally:
                await gateway.stop()
    return met


async def _models(gateway: Gateway, endpoints: Mapping[str, Any], samples: Path) -> tuple[str, str, str]:
    """Have the gateway make what is copied: an operation that builds a cluster, and a CNF on it."""
    async with GatewayClient(gateway.url) as client, Load(gateway.url) as load:
        await client.call("POST", "/v1.0/vims", {"vim": openstack_vim(dict(endpoints))})
        vnfds = {name: (await client.onboard(samples / f"{name}.zip"))["vnfdId"] for name in ("vm", "cluster", "cnf")}
        cluster = await load.create(vnfds["cluster"], "cluster")
        await load.operate([cluster], "instantiate", body("cluster", "instantiate"))
        shown, _ = await load.call("GET", f"/kubevnfm/v1/operations?vnfInstanceId={cluster}")
        instance, _ = await load.call("GET", f"/kubevnfm/v1/instances/{cluster}/tree")
        vim = next(each["id"] for each in instance["root"]["children"] if each["kind"] == "vim")
        cnf = await load.create(vnfds["cnf"], "cnf")
        wanted = {
            **body("cnf", "instantiate"),
            "vimConnectionInfo": {"cluster": {"vimId": vim, "vimType": "ETSINFV.KUBERNETES.V_1"}},
        }
        await load.operate([cnf], "instantiate", wanted)
    return vnfds["vm"], shown["items"][0]["id"], cnf


def main() -> None:
    """Run the bench."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strict", action="store_true", help="exit code 1 if a goal is missed")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these figures alone")
    parser.add_argument("--day-events", type=int, default=DAY_EVENTS, help="how many happen while the page is open")
    parser.add_argument("--samples", type=Path, default=Path(".run/samples"))
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM must stop the started processes too
    met = asyncio.run(measure(arguments.only, arguments.samples, arguments.day_events))
    say("\nall goals met" if met else "\na goal was missed")
    sys.exit(1 if arguments.strict and not met else 0)


if __name__ == "__main__":
    main()
