"""The settings of the export to A&AI, and its TLS (multicloud.md MC-110)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubevnfm_infra_k8s.adapters.aai import AaiGraph
from kubevnfm_infra_k8s.adapters.export_metrics import ExportMetrics
from kubevnfm_infra_k8s.domain.exporting.ports import AaiAway
from kubevnfm_infra_k8s.export_settings import ExportSettings
from kubevnfm_kit.http import serving
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.tls import ClientTls, ServerTls
from pydantic import ValidationError
from servers.certificates import Authority

SECRET = "password-of-aai"


@pytest.mark.parametrize(
    "given",
    [
        {"aai_url": "http://aai.onap:8080"},
        {"aai_url": "ftp://aai.onap"},
        {"aai_url": "https://user:x@aai.onap"},
        {"aai_url": "https://aai.onap?x=1"},
        {"aai_user": "a"},
        {"aai_user": "a:b", "aai_password": SECRET},
        {"aai_version": 13},
        {"aai_batch": 0},
        {"aai_tls_key": "/k.pem"},
    ],
)
def test_settings_that_cannot_work_are_refused(given: dict[str, Any]) -> None:
    """Also http, by which the password would be readable on the way."""
    with pytest.raises(ValidationError) as error:
        ExportSettings.model_validate(given)
    assert SECRET not in str(error.value.errors(include_input=False))


def test_the_password_is_not_shown() -> None:
    settings = ExportSettings.model_validate(
        {"aai_url": "https://aai.onap:8443", "aai_user": "a", "aai_password": SECRET}
    )
    assert SECRET not in repr(settings)
    assert ExportSettings.model_validate({"aai_url": "http://127.0.0.1:8080"}).aai_url is not None


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_the_certificate_of_aai_is_verified(tmp_path: Path, *, is_trusted: bool) -> None:
    """MC-110: one of another CA gets no request, so no password."""
    asked: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request)
        return web.json_response({"resource-version": "1"})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    server, metrics = ours.issue("aai"), ExportMetrics(Metrics())
    tls = ClientTls((ours if is_trusted else theirs).file)
    async with (
        serving(app, host="127.0.0.1", port=0, tls=ServerTls(server.certificate, server.key)) as port,
        AaiGraph.open(
            f"https://127.0.0.1:{port}", "v14", metrics, tls=tls, user="a", password=SECRET, parallel=1
        ) as graph,
    ):
        if is_trusted:
            assert await graph.get("/network/l3-networks/l3-network/x") == {"resource-version": "1"}
        else:
            with pytest.raises(AaiAway):
                await graph.get("/network/l3-networks/l3-network/x")
    assert len(asked) == is_trusted
