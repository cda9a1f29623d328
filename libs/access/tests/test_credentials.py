"""The parts of access alone: buckets, what is remembered, passwords; bounded, whatever strangers send."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from kubevnfm_access.basic import BasicUsers
from kubevnfm_access.caller import Caller, Role, needed_role, roles_of
from kubevnfm_access.credentials import Credentials
from kubevnfm_access.errors import TooManyRequests, Unauthenticated
from kubevnfm_access.gate import Gate
from kubevnfm_access.limiter import RateLimit
from kubevnfm_access.memory import VerdictMemory
from kubevnfm_access.passwords import PasswordHash
from kubevnfm_access.tries import Tries
from kubevnfm_access.users import UsersFile

ANNA = Caller("anna", "bearer", frozenset({Role.READER}))


class Now:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.s = 1000.0

    def __call__(self) -> float:
        return self.s


class Doorman:
    """An `Authenticator` that refuses everything, once so many callers wait for it."""

    challenge = "Basic"

    def __init__(self, callers: int) -> None:
        self.barrier = asyncio.Barrier(callers)

    async def caller(self, _: Credentials) -> Caller | None:
        async with self.barrier:
            raise Unauthenticated("wrong")


async def test_wrong_credentials_that_are_checked_at_the_same_time_all_count() -> None:
    """Otherwise a guesser would have as many tries at once as connections, each time that one try is allowed again."""
    now = Now()
    gate = Gate([Doorman(5)], tries=Tries(per_min=10, burst=3, now=now))
    guess = Credentials(authorization=["Basic eDp5"])
    found = await asyncio.gather(*(gate.admit(guess, address="192.0.2.1") for _ in range(5)), return_exceptions=True)
    assert [type(each) for each in found] == [Unauthenticated] * 5
    with pytest.raises(TooManyRequests) as refused:
        await gate.admit(guess, address="192.0.2.1")
    assert refused.value.retry_after_s == 18, "of 3 tries 5 were used: 2 are owed, and at 10 a minute one takes 6 s"


def test_a_bucket_empties_fills_and_never_overflows() -> None:
    now = Now()
    limit = RateLimit(per_s=2.0, burst=3, now=now)
    assert [limit.count("a") for _ in range(5)] == [0, 0, 0, 1, 1]
    assert limit.count("b") == 0
    now.s += 0.5
    assert [limit.count("a") for _ in range(2)] == [0, 1]
    now.s += 1000
    assert [limit.count("a") for _ in range(4)] == [0, 0, 0, 1]


def test_a_slow_bucket_says_how_long() -> None:
    limit = RateLimit(per_s=0.1, burst=1, now=Now())
    assert (limit.wait_s("a"), limit.count("a"), limit.wait_s("a")) == (0, 0, 10)


def test_buckets_of_strangers_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubevnfm_access.limiter._MOST", 10)
    limit = RateLimit(per_s=0.001, burst=1, now=Now())
    for number in range(100):
        assert limit.count(f"address {number}") == 0
    assert len(limit._buckets) == 10
    assert limit.count("address 99") > 0


async def test_simultaneous_requests_with_a_token_ask_once_and_its_end_is_kept() -> None:
    now = Now()
    memory = VerdictMemory(keep_s=60, now=now)
    asked: list[str] = []
    is_asked, may_answer = asyncio.Event(), asyncio.Event()

    async def ask() -> Caller:
        asked.append("t")
        is_asked.set()
        await may_answer.wait()
        return replace(ANNA, expires=now.s + 30)

    waiting = [asyncio.create_task(memory.caller("t", ask)) for _ in range(10)]
    await is_asked.wait()
    waiting[0].cancel()  # the one who asks goes away: the next one asks
    may_answer.set()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert [one.subject for one in done if isinstance(one, Caller)] == ["anna"] * 9
    assert len(asked) == 2
    now.s += 29
    assert await memory.caller("t", ask) == replace(ANNA, expires=1030.0)
    assert len(asked) == 2
    now.s += 1  # it ended, though it might be kept longer
    assert await memory.caller("t", ask) == replace(ANNA, expires=1060.0)
    assert len(asked) == 3
    assert memory._asking == {}


async def test_refusals_are_not_remembered_and_leave_nothing() -> None:
    memory = VerdictMemory(keep_s=60, now=Now())

    async def refuse() -> Caller:
        raise Unauthenticated("no")

    for number in range(100):
        with pytest.raises(Unauthenticated):
            await memory.caller(f"t{number}", refuse)
    assert (len(memory._known), memory._asking) == (0, {})


async def test_tokens_that_are_remembered_are_bounded_and_no_token_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubevnfm_access.memory._MOST", 10)
    memory = VerdictMemory(keep_s=60, now=Now())

    async def admit() -> Caller:
        return ANNA

    for number in range(50):
        await memory.caller(f"s3cret-{number}", admit)
    assert len(memory._known) == 10
    assert "s3cret" not in repr(vars(memory))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "scrypt$15$8$3$AAAA",
        "scrypt$60$8$3$AAAA$AAAA",
        "scrypt$15$8$999$AAAA$AAAA",
        "scrypt$a$8$3$AAAA$AAAA",
    ],
)
def test_what_is_no_hash_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        PasswordHash.parse(text)


def test_a_hash_is_read_back_as_it_was_written_and_shows_nothing() -> None:
    made = PasswordHash.from_password("pässword")
    assert PasswordHash.parse(str(made)) == made
    assert made.fits("pässword")
    assert not made.fits("password")
    assert str(made) not in repr(made)


def test_the_hash_of_no_password_is_as_slow_as_one_and_fits_none() -> None:
    """Otherwise the time of an answer shows which users exist."""
    unmatched, made = PasswordHash.unmatched(), PasswordHash.from_password("password")
    assert (unmatched.log_n, unmatched.r, unmatched.p) == (made.log_n, made.r, made.p)
    assert (len(unmatched.salt), len(unmatched.digest)) == (len(made.salt), len(made.digest))
    assert not unmatched.fits("")


async def test_a_crowd_of_wrong_passwords_is_sent_away_and_who_was_right_before_gets_in(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    file.write_text(f'[users.a]\nroles = ["reader"]\npassword = "{PasswordHash.from_password("right")}"\n')
    users = BasicUsers(UsersFile(file))

    def shown(password: str) -> Credentials:
        return Credentials(authorization=[f"Basic {b64encode(f'a:{password}'.encode()).decode()}"])

    assert await users.caller(shown("right")) == Caller("a", "basic", frozenset({Role.READER}))
    guesses = [asyncio.create_task(users.caller(shown(f"guess {number}"))) for number in range(40)]
    await asyncio.wait([guesses[-1]])  # the last ones find the queue full
    assert isinstance(guesses[-1].exception(), TooManyRequests)
    assert await users.caller(shown("right")) is not None
    for guess in guesses:
        guess.cancel()
    await asyncio.gather(*guesses, return_exceptions=True)
    with pytest.raises(Unauthenticated):
        await users.caller(shown("wrong"))


def test_credentials_show_nothing_of_themselves() -> None:
    shown = Credentials(authorization=["Basic s3cret"], auth_token="s3cret", certificate=b"s3cret")
    assert "s3cret" not in repr(shown)
    assert "s3cret" not in str(shown)


def test_a_role_includes_the_ones_before_it_and_unknown_names_give_none() -> None:
    admin = Caller("a", "m", frozenset({Role.ADMIN}))
    assert [admin.may(role) for role in Role] == [True, True, True]
    assert [ANNA.may(role) for role in Role] == [True, False, False]
    assert not Caller("n", "m", frozenset()).may(Role.READER)
    assert roles_of(["x", "member"], {"member": Role.OPERATOR}) == {Role.OPERATOR}


def test_a_dry_run_needs_the_role_of_a_reader_where_there_is_one() -> None:
    """MC-033, MC-135."""
    one = "/multicloud/v1/vnf_instances/1"
    for method, path in (("POST", one[:-2]), ("PATCH", one), ("POST", f"{one}/rollback")):
        assert needed_role(method, path, is_dry_run=True) is Role.READER
    for method, path in (("DELETE", one), ("PUT", f"{one}/suspension"), ("POST", "/vnflcm/v2/vnf_instances")):
        assert needed_role(method, path, is_dry_run=True) is Role.OPERATOR


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/vnfpkgm/v1/vnf_packages", Role.READER),
        ("POST", "/vnflcm/v1/subscriptions", Role.OPERATOR),
        ("DELETE", "/multicloud/v1/virtual-links/1", Role.OPERATOR),
        ("POST", "/multicloud/v1/persistent-volumes", Role.OPERATOR),
        ("POST", "/multicloud/v1/cloud-regions", Role.ADMIN),
        ("PUT", "/v1.0/vims/x", Role.ADMIN),
        ("PATCH", "/vnfpkgm/v1/vnf_packages/x", Role.ADMIN),
        ("PATCH", "/vnffm/v1/alarms/x", Role.OPERATOR),
        ("POST", "/vnfpm/v2/pm_jobs", Role.OPERATOR),
        ("DELETE", "/something/new", Role.ADMIN),
        ("POST", "/v1/instance/jovial_lamport/upgrade", Role.OPERATOR),
        ("DELETE", "/api/multicloud-k8s/v1/v1/instance/x", Role.OPERATOR),
        ("POST", "/v1/rb/definition", Role.ADMIN),
        ("POST", "/v2/cluster-providers/op/clusters/edge/apply", Role.OPERATOR),
        ("GET", "/v1/rb/definition", Role.READER),
        ("GET", "/multicloud/v1/cloud-regions/op/edge/resources", Role.READER),
        ("PUT", "/multicloud/v1/cloud-regions/op/edge/kubeconfig", Role.ADMIN),
    ],
)
def test_an_unlisted_path_needs_the_highest_role(method: str, path: str, role: Role) -> None:
    assert needed_role(method, path) is role
