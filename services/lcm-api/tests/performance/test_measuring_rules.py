"""The expressions for a Prometheus, and the assignment of its series."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import ClientSession
from kubevnfm_clients.outbound import AddressRules
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_lcm_api.performance.adapters.prometheus import PrometheusApi
from kubevnfm_lcm_api.performance.domain.measured_objects import Measured, Pod, Vnfc, measured
from kubevnfm_lcm_api.performance.domain.metrics import BY_TYPE, wanted_metrics
from kubevnfm_lcm_api.performance.domain.monitoring import read_monitoring
from kubevnfm_lcm_api.performance.domain.ports import MeasurementRefused, MeasurerUnavailable
from kubevnfm_lcm_api.performance.domain.queries import Question, Span, questions
from kubevnfm_lcm_api.performance.sources import Sources
from kubevnfm_sol.performance import ObjectType
from kubevnfm_sol.resources import InstantiatedVnfInfo
from servers.prometheus import TwinPrometheus

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
MINUTE = Span(60, 15)
MAC = "fa:16:3e:00:00:01"


def asked(
    object_type: ObjectType, name: str, what: Measured, span: Span = MINUTE, sub_ids: Sequence[str] = ()
) -> list[Question]:
    (wanted,) = wanted_metrics(object_type, [name], [], ["i"])
    return list(questions(wanted, what, span, sub_ids))


def machines() -> InstantiatedVnfInfo:
    """Return a VNF of one machine with an internal and an external connection point."""
    ips = [{"type": "IPV4", "addresses": ["10.0.0.5"]}, {"type": "IPV6", "addresses": ["fd00::5"]}]
    protocol = [
        {"layerProtocol": "IP_OVER_ETHERNET", "ipOverEthernet": {"macAddress": MAC.upper(), "ipAddresses": ips}}
    ]
    cp = {"id": "cp-1", "cpdId": "CP1", "cpProtocolInfo": protocol}
    server = {"resourceId": "s", "vimLevelResourceType": "OS::Nova::Server"}
    return InstantiatedVnfInfo.model_validate(
        {
            "flavourId": "simple",
            "vnfcResourceInfo": [{"id": "r", "vduId": "VDU1", "computeResource": server, "vnfcCpInfo": [cp]}],
            "vnfcInfo": [{"id": "VDU1-r", "vduId": "VDU1", "vnfcResourceInfoId": "r"}],
            "extCpInfo": [{"id": "ext-1", "cpdId": "E", "cpConfigId": "c", "associatedVnfcCpId": "cp-1"}],
        }
    )


def test_machines_are_found_by_their_addresses_and_connection_points_by_their_cards() -> None:
    """API-203."""
    what = measured("Vnfc", [("i", machines())])
    (question,) = asked("Vnfc", "VCpuUsageMeanVnf", what)
    assert r"10\\.0\\.0\\.5" in question.text
    for instance in ("10.0.0.5:9100", "10.0.0.5", "[fd00::5]:9100", "fd00::5"):
        assert question.target({"instance": instance}) == ("i", "VDU1-r")
    assert question.target({"instance": "10.0.0.55:9100"}) is None
    for object_type, name, point in (
        ("VnfIntCp", "ByteIncomingVnfIntCp", "cp-1"), ("VnfExtCp", "PacketOutgoingVnfExtCp", "ext-1"),
    ):  # fmt: skip
        kind: Any = object_type
        (question,) = asked(kind, name, measured(kind, [("i", machines())]))
        assert MAC in question.text
        assert question.target({"address": MAC}) == ("i", point)
        assert question.target({"address": "fa:16:3e:00:00:02"}) is None
        assert asked(kind, name, measured(kind, [("i", machines())]), sub_ids=["another"]) == []


def test_interfaces_of_pods_are_the_connection_points_of_containers() -> None:
    """API-203: as Tacker has it."""
    what = Measured((Vnfc("i", "v0", Pod("ns", "web-0")), Vnfc("i", "v1", Pod("ns", "web-1"))))
    (question,) = asked("VnfIntCp", "ByteOutgoingVnfIntCp", what, sub_ids=["eth0"])
    assert 'interface=~"eth0"' in question.text
    assert "container_network_transmit_bytes_total" in question.text
    assert question.target({"namespace": "ns", "pod": "web-1", "interface": "eth0"}) == ("i", "eth0")
    assert question.target({"namespace": "other", "pod": "web-1", "interface": "eth0"}) is None
    assert question.is_sum


@pytest.mark.parametrize("name", [each.name for each in BY_TYPE["Vnf"]])
def test_mean_and_peak_are_different_expressions_of_the_same_series(name: str) -> None:
    """API-203."""
    what = Measured((Vnfc("i", "v0", Pod("ns", "web-0")),))
    (question,) = asked("Vnf", name, what)
    (other,) = asked("Vnf", name.replace("Mean", "Peak") if "Mean" in name else name.replace("Peak", "Mean"), what)
    assert question.text != other.text
    assert ("max_over_time" in question.text) is ("Peak" in name)


def test_names_cannot_leave_their_place_in_an_expression() -> None:
    """API-203."""
    nasty = Pod('a"} or vector(1) #', "b\\|.*\n")
    (question,) = asked("Vnf", "VDiskUsageMeanVnf", Measured((Vnfc("i", "v", nasty),)))
    assert 'a"}' not in question.text
    assert "\n" not in question.text
    assert r".*" not in question.text.replace(r"\\.\\*", "")
    assert question.target({"namespace": nasty.namespace, "pod": nasty.name}) == ("i", "v")


def test_many_pods_are_asked_for_in_parts_and_a_short_period_by_a_longer_window() -> None:
    """API-203."""
    pods = tuple(Vnfc("i", f"v{n}", Pod("ns", f"web-{n}")) for n in range(450))
    found = asked("Vnf", "VCpuUsageMeanVnf", Measured(pods), Span(5, 15))
    assert len(found) == 3
    assert all("[30s]" in each.text for each in found)
    assert [each.target({"namespace": "ns", "pod": "web-449"}) for each in found] == [None, None, ("i", "v449")]


def test_a_group_has_all_metrics_of_its_objects() -> None:
    """API-201."""
    names = [each.name for each in wanted_metrics("Vnfc", [], ["VirtualisedComputeResource"], ["a", "b"])]
    assert len(names) == len(set(names)) == 12
    assert {"VMemoryUsagePeakVnf.a", "VDiskUsageMeanVnf.b"} <= set(names)
    names = [each.name for each in wanted_metrics("VnfExtCp", [], ["VnfExternalCp"], ["a"])]
    assert sorted(names) == [f"{unit}{way}VnfExtCp" for unit in ("Byte", "Packet") for way in ("Incoming", "Outgoing")]


def test_the_prometheus_of_the_site_comes_before_one_that_only_a_rule_file_would_need() -> None:
    """API-202."""
    reload = {"prometheusReloadApiEndpoint": "https://prometheus.example:9090/base/-/reload"}
    own = {"prometheusUrl": "https://own.example/"}
    frame = {"monitorName": "prometheus", "driverType": "external"}
    nothing: Any = None
    given: Any = object()
    site, none = (Sources(each, nothing, AddressRules()) for each in (given, nothing))

    def read(*targets: dict[str, str]) -> Any:
        return read_monitoring({"monitoring": {**frame, "targetsInfo": list(targets)}})

    assert none.chosen(read(reload)) == ["https://prometheus.example:9090/base"]
    assert site.chosen(read(reload)) == ["site"]
    assert site.chosen(read(reload, own)) == none.chosen(read(own)) == ["https://own.example"]
    assert none.chosen(read()) == [], "its values are sent"
    assert none.chosen(read_monitoring(None)) == ["metrics.k8s.io"]
    with pytest.raises(InvalidInput, match="without credentials"):
        read({"prometheusUrl": "https://us:pw@own.example"})


# --- the adapter --------------------------------------------------------------------------------------------------------


async def test_answers_that_are_none_of_a_prometheus_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """API-206."""
    async with TwinPrometheus.listening() as twin, ClientSession(auto_decompress=False) as session:
        api = PrometheusApi(session, f"{twin.url}/", {"Authorization": "Bearer t"})

        async def ask() -> Any:
            return await api.query_range("up", start=NOW, end=NOW, step_s=10)

        twin.add("up", 3.5, pod="a")
        twin.add("up", float("nan"), pod="b")
        (first, second) = await ask()
        assert (first.labels, first.values) == ({"pod": "a"}, [(NOW.timestamp(), 3.5)])
        assert second.values == [], "no number"
        assert set(twin.authorizations) == {"Bearer t"}
        twin.refused = "parse \x1b[31merror"
        with pytest.raises(MeasurementRefused, match="refuses the query: parse error"):
            await ask()
        twin.refused = ""
        many = '{"status": "success", "data": {"resultType": "matrix", "result": [' + ",".join(["{}"] * 2001) + "]}}"
        for raw, refusal, reason in (
            (b"<html>", MeasurerUnavailable, "not as a Prometheus does"),
            (b'{"status": "success", "data": []}', MeasurerUnavailable, "as a Prometheus does"),
            (many.encode(), MeasurementRefused, "more than 2000 series"),
            (b"x" * (17 * 1024 * 1024), MeasurementRefused, "an answer of more than 16777216 bytes"),
        ):
            twin.raw = raw
            with pytest.raises(refusal, match=reason):
                await ask()
        twin.is_away = True
        with pytest.raises(MeasurerUnavailable, match="answered 503"):
            await ask()
