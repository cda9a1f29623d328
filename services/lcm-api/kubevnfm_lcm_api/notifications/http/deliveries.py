"""``/kubevnfm/v1/subscriptions/{id}``: the state of a subscription's deliveries."""

from __future__ import annotations

from aiohttp import web
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import shown_url

from kubevnfm_lcm_api.http.context import api_root
from kubevnfm_lcm_api.http.routes import Answer, Route
from kubevnfm_lcm_api.notifications.http.context import services
from kubevnfm_lcm_api.notifications.http.models import DeliveriesView
from kubevnfm_lcm_api.notifications.http.subscriptions import subscription_url


async def show(request: web.Request) -> web.Response:
    state = await services(request).subscriptions.delivery_state(request.match_info["id"])
    document = state.subscription
    record: JsonObject = document.get("delivery", {})
    failures = record.get("failures", 0)
    # A turn without an owner is a back-off. Without pending notifications it is a leftover and says nothing.
    turn = document.get("turn", {}) if state.pending else {}
    facts = {
        "oldestPendingAt": state.oldest_pending_at,
        "lastSuccessAt": record.get("last_success_at"),
        "lastFailureAt": record.get("last_failure_at"),
        "lastFailure": record.get("last_failure"),
        "nextTryAt": turn.get("until") if failures and turn.get("owner") == "-" else None,
    }
    root = api_root(request)
    return web.json_response(
        {
            "id": document["id"],
            "callbackUri": shown_url(document["callbackUri"]),
            "state": "WAITING" if state.pending and failures else "DELIVERING" if state.pending else "IDLE",
            "pending": state.pending,
            "failuresInARow": failures,
            "dropped": record.get("dropped", 0),
            **{name: value for name, value in facts.items() if value is not None},
            "_links": {
                "self": {"href": f"{root}/kubevnfm/v1/subscriptions/{document['id']}"},
                "subscription": {"href": subscription_url(document, root)},
            },
        }
    )


def routes() -> list[Route]:
    """Return the route."""
    state = {200: Answer("What is pending, what failed, when it is tried again", DeliveriesView)}
    path, summary = "/kubevnfm/v1/subscriptions/{id}", "Show how notifications are delivered"
    return [Route("Progress", "GET", path, show, summary, state)]
