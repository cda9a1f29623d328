"""Checks responses against an OpenAPI document: status, media type and body."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, Final

from aiohttp import web
from healthy import healthy
from jsonschema_rs import Draft202012, Draft202012Validator, Registry
from kubevnfm_access.gate import Gate
from kubevnfm_access.middleware import Proxies
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.metrics import Metrics
from kubevnfm_lcm_api.automation.http import actions as automatic
from kubevnfm_lcm_api.faults.http import alarms
from kubevnfm_lcm_api.gateway import metrics, vims
from kubevnfm_lcm_api.gateway.app import Subject, make_app
from kubevnfm_lcm_api.gateway.openapi.document import make_document
from kubevnfm_lcm_api.http.documents import DOCUMENTS, document_of
from kubevnfm_lcm_api.lifecycle.http import routes as lifecycle
from kubevnfm_lcm_api.multicloud import artifacts, subscriptions, vnf_events
from kubevnfm_lcm_api.multicloud import routes as multicloud
from kubevnfm_lcm_api.notifications.http import routes as notifications
from kubevnfm_lcm_api.onap import answers as onap_answers
from kubevnfm_lcm_api.onap import routes as onap
from kubevnfm_lcm_api.packages.http import routes as packages
from kubevnfm_lcm_api.page import routes as page
from kubevnfm_lcm_api.performance.http import resources as performance
from kubevnfm_lcm_api.views import routes as views
from kubevnfm_lcm_api.webhooks.http import routes as monitoring
from kubevnfm_lcm_api.webhooks.wiring import webhooks

from callers.etsi import etsi_schemas, misfit

_HERE: Final = "urn:openapi"


class Documented:
    """An OpenAPI 3.1 document that responses are checked against."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._roots = [each["url"] for each in document.get("servers", []) if each["url"] != "/"]
        self._registry = Registry([(_HERE, dict(document))], draft=Draft202012)
        self._patterns = [(_pattern(path), path) for path in sorted(document["paths"], key=lambda path: "{" in path)]
        self._validators: dict[str, Draft202012Validator] = {}

    def check(self, method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Raise AssertionError if the response differs from the document."""
        operation = self._operation(method, path)
        if operation is None:
            assert method in {"HEAD", "OPTIONS"} or status in {401, 403, 404, 405, 421}, (
                f"{method} {path} is not documented"
            )
            return
        said = f"{method} {path} answers {status}"
        response = operation["responses"].get(str(status)) or operation["responses"]["default"]
        assert status >= 400 or str(status) in operation["responses"], f"{said}, which is not documented"
        content = response.get("content")
        if content is None:
            assert not body, f"{said} with a body, which is not documented"
            return
        media_type = headers.get("Content-Type", "").partition(";")[0]
        described = content.get(media_type) or content.get("*/*")
        assert described is not None, f"{said} as {media_type}; documented: {', '.join(content)}"
        if media_type.endswith("json"):
            wrong = misfit(self._validator(described["schema"]), json.loads(body))
            assert not wrong, f"{said}: {wrong}"

    def misfit_of_request(self, method: str, path: str, body: object) -> str:
        """Return how a JSON body differs from the document; empty if it does not. ``path``: as the document has it."""
        content = self._document["paths"][path][method.lower()]["requestBody"]["content"]
        return misfit(self._validator(content["application/json"]["schema"]), body)

    def template(self, path: str) -> str | None:
        """Return a path as the document has it; None if it has none."""
        path = path.partition("?")[0]
        for root in self._roots:
            path = path.removeprefix(root).rstrip("/")
        return next((template for pattern, template in self._patterns if pattern.fullmatch(path)), None)

    def _operation(self, method: str, path: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._document["paths"].get(self.template(path), {}).get(method.lower())
        return found

    def _validator(self, schema: Mapping[str, Any]) -> Draft202012Validator:
        key = json.dumps(schema)
        if key not in self._validators:
            absolute = json.loads(key.replace('"#/', f'"{_HERE}#/'))
            self._validators[key] = Draft202012Validator(absolute, registry=self._registry)
        return self._validators[key]


def _pattern(path: str) -> re.Pattern[str]:
    last = re.escape(path).replace(re.escape("{path}"), ".+")
    return re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", last))


def an_app(*more: Subject) -> web.Application:
    """Return the gateway's application with its routes, and those of more subjects; it cannot serve requests."""

    nothing: Any = None
    subjects: list[Subject] = [
        partial(lifecycle.add_to, services=nothing),
        partial(packages.add_to, services=nothing),
        partial(notifications.add_to, services=nothing),
        partial(alarms.add_to, alarms=nothing),
        partial(automatic.add_to, automatic=nothing),
        partial(performance.add_to, jobs=nothing, thresholds=nothing),
        partial(vims.add_to, vims=nothing, links=nothing, volumes=nothing),
        partial(multicloud.add_to, services=nothing, vnfs=nothing, groups=nothing, ends=nothing, group_parallel=1),
        partial(artifacts.add_to, variables=nothing, copies=nothing),
        partial(subscriptions.add_to, subscriptions=nothing),
        partial(vnf_events.add_to, instance_events=nothing),
        partial(views.add_to, services=nothing),
        partial(page.add_to, sessions=nothing, ways=()),
        partial(metrics.add_to, metrics=Metrics()),
        partial(
            monitoring.add_to, webhooks=webhooks(nothing, nothing, nothing, nothing), servers=nothing, count=nothing
        ),
        *more,
    ]
    return make_app(subjects, nothing, healthy, {}, gate=Gate([]), proxies=Proxies())


def an_onap_app() -> web.Application:
    """Return the gateway's application with the paths of ONAP; it cannot serve requests."""
    nothing: Any = None
    return an_app(partial(onap.add_to, stored_bundles=nothing))


@cache
def onap_document() -> JsonObject:
    """Return the document of ONAP's paths; nothing may change it."""
    return make_document(an_onap_app(), onap_answers.DOCUMENT, version="tested")


@cache
def onap_documented() -> Documented:
    """Return the document of ONAP's paths, which the answers of `onap_compat` are checked against."""
    return Documented(onap_document())


@cache
def our_documents() -> Mapping[str, Documented]:
    """Return the gateway's own documents, by prefix."""
    return {prefix: Documented(document) for prefix, document in documents().items()}


@cache
def documents() -> Mapping[str, JsonObject]:
    """Return the documents themselves, by prefix. They are made once in each process, which takes some tenths of a second.

    Nothing may change them.
    """
    app = _our_app()
    return {about.prefix: make_document(app, about, version="tested") for about in app[DOCUMENTS]}


@cache
def _our_app() -> web.Application:
    return an_app()


def judge(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise AssertionError if a response differs from its document of the gateway or, if available, from ETSI's files."""
    document = our_documents()[document_of(_our_app(), path.partition("?")[0]).prefix]
    # Without `onap_compat` its paths are unknown, which is a problem as everywhere.
    if onap_answers.DOCUMENT.has(path) and not headers.get("Content-Type", "").startswith("application/problem"):
        document = onap_documented()
    document.check(method, path, status, headers, body)
    etsi = etsi_schemas()
    if etsi is not None:
        etsi.check(method, path, status, headers, body)
