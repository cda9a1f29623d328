"""A hostile NFVO, subscriber, token endpoint and package server against lcm-api's clients."""

from __future__ import annotations

import asyncio

import pytest
from kubevnfm_clients.client_tokens import Client, ClientTokens, NoToken
from kubevnfm_clients.outbound import AddressRules, outbound_session
from kubevnfm_lcm_api.granting.adapters.nfvo import HttpNfvo, NfvoCredentials
from kubevnfm_lcm_api.lifecycle.core.granting import Granted, Refused, Unanswered
from kubevnfm_lcm_api.notifications.adapters.callbacks import HttpSubscriber
from kubevnfm_lcm_api.notifications.domain.callback import Callback, Notice, Taken, Untaken
from kubevnfm_lcm_api.notifications.domain.callback import Refused as NotificationRefused
from kubevnfm_lcm_api.packages.adapters.sources import HttpPackageSources
from kubevnfm_lcm_api.packages.adapters.transfers import SourceFailed
from kubevnfm_lcm_api.packages.artifact_settings import ArtifactSettings
from kubevnfm_secrets import KeyRing
from servers.hostile import ATTACKS, Hostile, answers, endless, flat_memory, hostile_server, json_attack

RING = KeyRing([bytes(32)])
LOOPBACK = AddressRules.from_text("127.0.0.0/8")
MOST_MIB = 100


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubevnfm_clients.client_tokens._FETCH_S", 1.0)
    monkeypatch.setattr("kubevnfm_lcm_api.notifications.adapters.callbacks._TEST_S", 1.0)
    monkeypatch.setattr("kubevnfm_lcm_api.notifications.adapters.callbacks._NOTIFY_S", 1.0)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_hostile_answers_of_an_nfvo_are_no_grants(attack: str) -> None:
    async with hostile_server(answers(b"{}")) as elsewhere, outbound_session(LOOPBACK) as session:
        async with hostile_server(json_attack(attack, elsewhere.url)) as server:
            nfvo = HttpNfvo(session, url=server.url, credentials=NfvoCredentials("u", "s3cret"), call_timeout_s=1)
            with flat_memory(MOST_MIB):
                async with asyncio.timeout(30):
                    decisions = [await nfvo.request_grant({"a": 1}), await nfvo.poll("grant-1")]
        for decision in decisions:
            # An object without attributes is a grant, which is refused when it is read.
            assert isinstance(decision, Unanswered | Refused) or attack == "an empty object"
            assert isinstance(decision, Granted) or len(str(decision)) < 5000
            assert "s3cret" not in str(decision)
        assert elsewhere.requests == []


@pytest.mark.parametrize("attack", ATTACKS)
async def test_hostile_token_endpoints_give_no_tokens(attack: str) -> None:
    async with hostile_server(answers(b"{}")) as elsewhere, outbound_session(LOOPBACK) as session:
        async with hostile_server(json_attack(attack, elsewhere.url)) as server:
            with flat_memory(MOST_MIB), pytest.raises(NoToken) as caught:
                async with asyncio.timeout(30):
                    await ClientTokens().token(Client(server.url, "client", "s3cret"), session)
        assert "s3cret" not in str(caught.value)
        assert elsewhere.requests == []


@pytest.mark.parametrize("attack", ATTACKS)
async def test_hostile_subscribers_hold_nothing_up(attack: str) -> None:
    async with hostile_server(answers(b"{}")) as elsewhere, outbound_session(LOOPBACK) as session:
        async with hostile_server(json_attack(attack, elsewhere.url)) as server:
            subscriber = HttpSubscriber(session, certified=None, rules=LOOPBACK, ring=RING)
            callback = Callback(server.url, None)
            with flat_memory(MOST_MIB):
                async with asyncio.timeout(300):
                    reason = await subscriber.test(callback)
                    outcome = await subscriber.notify(callback, Notice({"a": 1}, {"Version": "1.0"}))
        assert reason is not None
        assert isinstance(outcome, Taken | Untaken | NotificationRefused)
        assert elsewhere.requests == []


async def fetch(sources: HttpPackageSources, server: Hostile) -> None:
    async with asyncio.timeout(30), sources.open({"uri": f"{server.url}/package.zip"}) as content:
        async for _ in content.chunks:
            pass


@pytest.mark.parametrize("attack", ["a body byte by byte", "a gzip bomb", "one header without end", "no HTTP at all"])
async def test_hostile_package_servers_end_the_fetch(attack: str) -> None:
    async with hostile_server(json_attack(attack, "")) as server, outbound_session(LOOPBACK) as session:
        sources = HttpPackageSources(session, ArtifactSettings(), ring=RING, longest_s=1)
        with flat_memory(MOST_MIB), pytest.raises(SourceFailed):
            await fetch(sources, server)


async def test_a_package_without_end_passes_through_in_pieces() -> None:
    async with hostile_server(endless(b"PK\x03\x04", b"x" * 65536)) as server, outbound_session(LOOPBACK) as session:
        sources = HttpPackageSources(session, ArtifactSettings(), ring=RING, longest_s=2)
        with flat_memory(MOST_MIB), pytest.raises(SourceFailed, match="too long"):
            await fetch(sources, server)
