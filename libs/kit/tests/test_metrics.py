"""The metrics of a process: two formats, shared families, and reads that cannot hold a scrape up."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from aiohttp import web
from callers.metrics import metrics_text
from kubevnfm_kit import metrics as module
from kubevnfm_kit.errors import OutsideUnavailable
from kubevnfm_kit.http import serving
from kubevnfm_kit.metrics import Metrics, add_metrics, code_of, traced
from structlog.testing import capture_logs

PROMETHEUS = "application/openmetrics-text;version=1.0.0;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,*/*;q=0.2"
TRACE = "0123456789abcdef0123456789abcdef"


class Time:
    s = 0.0

    def __call__(self) -> float:
        return self.s


async def test_openmetrics_has_exemplars_and_the_text_format_is_for_all_others() -> None:
    metrics = Metrics()
    metrics.histogram("took_seconds", "Time.", ["of"]).series("a").observe(0.2, traced(TRACE))
    metrics.counter("done", "Ends.").series().inc()
    app = web.Application()
    add_metrics(app, metrics)
    async with serving(app, host="127.0.0.1", port=0) as port, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/metrics"
        async with session.get(url, headers={"Accept": PROMETHEUS}) as answer:
            text = await answer.text()
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
        async with session.get(url, headers={"Accept": "*/*"}) as answer:
            plain = await answer.text()
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert f'took_seconds_bucket{{le="0.25",of="a"}} 1.0 # {{trace_id="{TRACE}"}} 0.2' in text
    assert text.endswith("# EOF\n")
    assert TRACE not in plain
    for each in (text, plain):
        assert "done_total 1.0" in each
        assert "process_cpu_seconds_total" in each
        assert "_created" not in each


async def test_services_of_one_process_share_a_metric() -> None:
    metrics = Metrics()
    for service in ("a", "b"):
        metrics.counter("commands", "Commands.", ["service"]).series(service).inc()
    text = await metrics_text(metrics)
    assert text.count("# TYPE commands_total counter") == 1
    assert {'commands_total{service="a"} 1.0', 'commands_total{service="b"} 1.0'} <= set(text.splitlines())


async def test_a_gauge_shows_no_more_than_it_is_given_and_a_thousand_at_most() -> None:
    metrics = Metrics()
    gauge = metrics.gauge("up", "Up.", ["vim"])
    gauge.show({(f"{number:04}",): 1.0 for number in range(1500)})
    assert (await metrics_text(metrics)).count("up{") == 1000
    gauge.show({("0001",): 0.0})
    assert 'up{vim="0001"} 0.0' in (text := await metrics_text(metrics))
    assert text.count("up{") == 1
    gauge.clear()
    assert "up{" not in await metrics_text(metrics)


async def test_a_read_that_fails_is_repeated_after_a_pause() -> None:
    time, tries = Time(), list[str]()
    metrics = Metrics(time)
    value = metrics.gauge("value", "Value.").series()

    async def read() -> None:
        tries.append("read")
        value.set(len(tries))
        if len(tries) == 1:
            raise OutsideUnavailable("no database")

    metrics.before_reading(read, every_s=1.0)
    for at_s, shown in ((0.0, 1), (14.0, 1), (15.0, 2), (15.5, 2), (16.0, 3)):
        time.s = at_s
        assert f"value {shown}.0" in await metrics_text(metrics)


async def test_a_read_that_hangs_holds_up_one_call_and_not_those_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_READ_WITHIN_S", 0.01)
    time, hung = Time(), list[str]()
    metrics = Metrics(time)

    async def hang() -> None:
        hung.append("read")
        await asyncio.Event().wait()

    metrics.before_reading(hang, every_s=1.0)
    await asyncio.gather(*(metrics_text(metrics) for _ in range(4)))
    assert len(hung) == 1
    time.s = 10.1
    await metrics_text(metrics)
    assert len(hung) == 2


async def test_a_read_that_takes_long_is_done_less_often() -> None:
    time, reads = Time(), list[float]()
    metrics = Metrics(time)

    async def count() -> None:
        reads.append(time.s)
        time.s += 3.0

    metrics.before_reading(count, every_s=30.0)
    for at_s in (0.0, 31.0, 62.0, 64.0):
        time.s = at_s
        await metrics_text(metrics)
    assert reads == [0.0, 64.0]


async def test_a_fault_in_one_gauge_hides_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics()
    value = metrics.gauge("value", "Value.").series()

    async def broken() -> None:
        raise KeyError("steps")

    async def read() -> None:
        value.set(7)

    metrics.before_reading(broken)
    metrics.before_reading(read)
    assert "value 7.0" in await metrics_text(metrics)
    assert "metrics_not_read" in capsys.readouterr().out


async def test_a_fault_that_lasts_is_said_once_though_the_others_are_read_more_often() -> None:
    time, value = Time(), 0
    metrics = Metrics(time)

    async def broken() -> None:
        if value == 0:
            raise KeyError("steps")

    async def read() -> None:
        pass

    metrics.before_reading(broken, every_s=30.0)
    metrics.before_reading(read)
    with capture_logs() as lines:
        for at_s in range(0, 120, 15):
            time.s = float(at_s)
            await metrics_text(metrics)
        value = 1
        time.s = 150.0
        await metrics_text(metrics)
    assert [each["event"] for each in lines] == ["metrics_not_read", "outage_began", "outage_ended"]


@pytest.mark.parametrize(("status", "code"), [(200, "200"), (None, "none"), (799, "other"), (10**40, "other")])
def test_the_code_of_an_answer_is_bounded(status: int | None, code: str) -> None:
    assert code_of(status) == code


async def test_the_event_loop_is_measured_and_the_version_shown() -> None:
    metrics = Metrics()
    async with metrics.watching("1.2.3"):
        await asyncio.sleep(0)
        text = await metrics_text(metrics)
    assert 'kubevnfm_build_info{version="1.2.3"} 1.0' in text
    assert "# TYPE kubevnfm_event_loop_lag_seconds histogram" in text
