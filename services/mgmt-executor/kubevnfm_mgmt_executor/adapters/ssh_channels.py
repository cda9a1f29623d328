"""The channels of one SSH connection: how many sshd allows at a time, and what their errors mean."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import asyncssh
from asyncssh.constants import OPEN_REQUEST_SESSION_FAILED
from kubevnfm_kit.printable import printable

from kubevnfm_mgmt_executor.domain.errors import ConnectionLost, SessionRefused, TransferRefused

COMMAND_S: Final = 60.0
"""For the adapter's own small commands, file transfers, and the opening of a channel."""
LONGEST_REASON: Final = 1000
_REFUSED_ALONE: Final = 5
_REFUSED_PAUSE_S: Final = 0.2
"""sshd counts a channel for a moment after its end, so a refusal while no other command runs is believed after some tries."""

Opened = TypeVar("Opened", "asyncssh.SSHClientProcess[bytes]", asyncssh.SFTPClient)
T = TypeVar("T")


def plain(error: BaseException) -> str:
    """Return the reason in an error's text; a server words that of its own disconnect."""
    # asyncio says "[Errno 113] Connect call failed ('10.0.0.5', 22)".
    if isinstance(error, OSError) and error.errno and "Connect call failed" in str(error):
        return os.strerror(error.errno)
    return printable(str(error))[:LONGEST_REASON] or type(error).__name__


class Channels:
    """Opens channels. sshd refuses more of them than its ``MaxSessions``; the first refusal shows how many there may be."""

    def __init__(self, connection: asyncssh.SSHClientConnection, node: str) -> None:
        self.connection, self.node = connection, node
        self._open = 0
        self._most: int | None = None
        self._lasting = 0
        """How many of the open ones last as long as the connection."""
        self._changed = asyncio.Event()
        self._ending: set[asyncio.Task[None]] = set()

    async def open(self, start: Callable[[], Awaitable[Opened]], *, task: str = "", lasts: bool = False) -> Opened:
        """Return what ``start`` opens, when there may be another one; `end` follows, unless it ``lasts``.

        Raises ConnectionLost, SessionRefused; asyncssh.SFTPError.
        """
        refused = 0
        while True:
            while self._most is not None and self._open >= self._most:
                await self._changed.wait()
            others = self._open
            self._open += 1
            opening = asyncio.ensure_future(start())
            try:
                opened = await self._started(opening, task)
            except asyncssh.ChannelOpenError as error:
                self._ended()
                refused = await self._learn(error, others, refused, task)
            except BaseException:
                self._end_late(opening)
                raise
            else:
                self._lasting += lasts
                return opened

    def end(self, opened: Opened) -> None:
        """Close a channel. Another one may be opened when the machine has closed it too, which sshd does when its command has ended."""

        async def closed() -> None:
            try:
                if isinstance(opened, asyncssh.SFTPClient):
                    opened.exit()
                else:
                    opened.close()
                await opened.wait_closed()
            finally:
                self._ended()

        self._in_background(closed())

    def _end_late(self, opening: asyncio.Future[Opened]) -> None:
        """End what is being opened for a caller that has gone: its command would run on, and count."""

        async def opened() -> None:
            await asyncio.wait({opening})
            if opening.cancelled() or opening.exception() is not None:
                self._ended()
            else:
                self.end(opening.result())

        self._in_background(opened())

    def _in_background(self, ending: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(ending)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _ended(self) -> None:
        self._open -= 1
        # A new event each time: those that wait for the next change must not see this one.
        self._changed.set()
        self._changed = asyncio.Event()

    async def _started(self, opening: asyncio.Future[Opened], task: str) -> Opened:
        within = asyncio.timeout(COMMAND_S)
        try:
            # The library forgets a channel whose opening is cancelled, and the machine then starts the command all the same.
            async with within:
                return await asyncio.shield(opening)
        except TimeoutError as error:
            if not within.expired():
                raise
            reason = f"the machine opened no channel within {COMMAND_S:.0f} s"
            raise ConnectionLost(reason, node=self.node, task=task) from error
        except (asyncssh.ChannelOpenError, asyncssh.SFTPError) as error:
            if self.connection.is_closed():
                raise ConnectionLost(plain(error), node=self.node, task=task) from error
            raise
        except (OSError, asyncssh.Error) as error:
            raise ConnectionLost(plain(error), node=self.node, task=task) from error

    async def _learn(self, error: asyncssh.ChannelOpenError, others: int, refused: int, task: str) -> int:
        """Return how often it was refused in a row, if it may be opened later. Raises SessionRefused."""
        if error.code == OPEN_REQUEST_SESSION_FAILED:
            reason = f"the machine accepts the login, but refuses what a session is opened for: {plain(error)}"
            refusal = SessionRefused(reason, node=self.node, task=task)
            refusal.is_of_purpose = True
            raise refusal from error
        if others > self._lasting:
            # Those that are refused together count one another, so a later refusal may show that there may be fewer.
            self._most = max(self._lasting + 1, min(self._most or others, self._open))
            return 0
        if refused < _REFUSED_ALONE:
            await asyncio.sleep(_REFUSED_PAUSE_S)
            return refused + 1
        reason = f"the machine accepts the login, but refuses a session: {plain(error)}"
        if self._lasting:
            reason = "sshd allows one session at a time (MaxSessions), and two are needed: for files and for commands"
        raise SessionRefused(reason, node=self.node, task=task) from error

    async def timed(self, work: Awaitable[T]) -> T:
        """Return the result of a file transfer. Raises ConnectionLost, TransferRefused."""
        try:
            async with asyncio.timeout(COMMAND_S), self.translated():
                return await work
        except TimeoutError as error:
            raise ConnectionLost(f"file transfer: no answer within {COMMAND_S:.0f} s", node=self.node) from error

    @asynccontextmanager
    async def translated(self, task: str = "") -> AsyncIterator[None]:
        """Translate the library's errors, except that of a file that does not exist."""
        try:
            yield
        # TimeoutError is an OSError, but the callers give it a meaning of their own.
        except (asyncssh.SFTPNoSuchFile, TimeoutError):
            raise
        # Apart from other SFTP errors: a broken connection is worth a repeat, a refusal by the server is not.
        except (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection) as error:
            raise ConnectionLost(plain(error), node=self.node, task=task) from error
        except asyncssh.SFTPError as error:
            raise TransferRefused(f"file transfer: {plain(error)}", node=self.node, task=task) from error
        except BaseExceptionGroup as errors:
            # From a TaskGroup. A bug or a cancellation in the group must not look like a lost connection.
            known, other = errors.split((OSError, asyncssh.Error))
            if other is not None or known is None:
                raise
            raise ConnectionLost(plain(known.exceptions[0]), node=self.node, task=task) from errors
        except (OSError, asyncssh.Error) as error:
            raise ConnectionLost(plain(error), node=self.node, task=task) from error
