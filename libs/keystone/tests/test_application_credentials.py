"""Application credentials of the lab's Keystone: made, replaced, deleted, and refused to a restricted one (CR-049)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TypeVar

import pytest
from clouds.openstack_stand import standing
from keystoneauth1 import exceptions
from kubevnfm_keystone import ApplicationCredentials, Failure, KeystoneLogin, KeystoneSession, failure_of
from kubevnfm_lab.openstack.settings import CloudSettings

T = TypeVar("T")

NAME = "kubevnfm-of-a-cluster"


@pytest.fixture
async def login() -> AsyncIterator[KeystoneLogin]:
    """A user of the lab's Keystone, by its password."""
    async with standing(CloudSettings()) as stand:
        yield KeystoneLogin(stand.auth_url, username="nfv", password="nfv", project="nfv")


async def with_credentials(login: KeystoneLogin, work: Callable[[ApplicationCredentials], T]) -> T:
    """Return what ``work`` does with the user's application credentials, in a thread."""

    def run() -> T:
        session = KeystoneSession(login, timeout_s=10)
        try:
            return work(ApplicationCredentials(session))
        finally:
            session.close()

    return await asyncio.to_thread(run)


async def test_a_credential_is_replaced_under_its_name_and_deleted(login: KeystoneLogin) -> None:
    """CR-049: a repeated step replaces the credential whose secret was lost."""
    lost = await with_credentials(login, lambda mine: mine.replace(NAME, description="d"))
    assert lost.secret not in repr(lost)
    other = await with_credentials(login, lambda mine: mine.replace(f"{NAME}-2", description="d"))
    made = await with_credentials(login, lambda mine: mine.replace(NAME, description="d"))
    assert await with_credentials(login, lambda mine: mine.named(NAME)) == [made.id]
    by_credential = KeystoneLogin(login.auth_url, credential_id=made.id, credential_secret=made.secret)
    assert await with_credentials(by_credential, lambda mine: mine.named(NAME)) == [made.id]
    assert [await with_credentials(login, lambda mine: mine.delete(NAME)) for _ in range(2)] == [1, 0]
    assert await with_credentials(login, lambda mine: mine.named(f"{NAME}-2")) == [other.id]


async def test_a_login_by_the_name_of_a_credential_learns_its_id(login: KeystoneLogin) -> None:
    made = await with_credentials(login, lambda mine: mine.replace(NAME, description="d"))
    by_name = replace(login, password=None, project=None, credential_name=NAME, credential_secret=made.secret)

    def ids() -> list[str | None]:
        sessions = [KeystoneSession(one, timeout_s=10) for one in (by_name, login)]
        try:
            return [one.credential_id() for one in sessions]
        finally:
            for one in sessions:
                one.close()

    assert await asyncio.to_thread(ids) == [made.id, None]


async def test_a_credential_makes_and_deletes_no_other(login: KeystoneLogin) -> None:
    """CR-049: with such a VIM, the caller takes the VIM's own access data."""
    made = await with_credentials(login, lambda mine: mine.replace(NAME, description="d"))
    restricted = KeystoneLogin(login.auth_url, credential_id=made.id, credential_secret=made.secret)
    with pytest.raises(exceptions.Forbidden):
        await with_credentials(restricted, lambda mine: mine.replace(f"{NAME}-2", description="d"))
    with pytest.raises(exceptions.Forbidden):
        await with_credentials(restricted, lambda mine: mine.delete(NAME))


async def test_a_login_with_a_deleted_credential_says_so(login: KeystoneLogin) -> None:
    gone = replace(login, username=None, password=None, project=None, credential_id="f" * 32, credential_secret="s")
    with pytest.raises(exceptions.NotFound) as caught:
        await with_credentials(gone, lambda mine: mine.named(NAME))
    reason = "Keystone has no such application credential: it was deleted"
    assert failure_of(caught.value) == Failure("unauthorized", reason)
