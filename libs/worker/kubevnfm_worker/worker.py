"""Runs the handlers of a service's commands: each command's work once, through redeliveries and crashes.

A delivery claims the command's record in the inbox, runs the handler while the lease is renewed, stores the outcome
with its event, and acknowledges. The state in memory (the runs of this process) only saves time: another process
reads everything that it needs from the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Literal, Self

import structlog
from kubevnfm_bus.port import Ack, Again, Delivery, Handler, MessageBus, Verdict
from kubevnfm_bus.spans import step_of
from kubevnfm_events import CancelStep, Command, CommandFailed, Envelope, Event, Message, from_document
from kubevnfm_kit import live_spans
from kubevnfm_kit.clock import Clock, SteadyClock
from kubevnfm_kit.errors import OutsideUnavailable, VnfmError
from kubevnfm_kit.json_types import JsonObject
from kubevnfm_kit.metrics import Metrics
from kubevnfm_kit.owners import Owners
from kubevnfm_kit.run import repeat
from kubevnfm_secrets import KeyRing, sealed
from kubevnfm_store.port import DocumentStore, StoreUnavailable

from kubevnfm_worker.aborting import aborted
from kubevnfm_worker.answers import Answer, Broke, DeadlinePassed, Retry, answer_of, called, class_of, made_nothing_of
from kubevnfm_worker.command_lines import say_begun, say_ended, say_waits
from kubevnfm_worker.command_metrics import CommandMetrics
from kubevnfm_worker.failure import NO_DEADLINE_TRIES, RETRY, StepCancelled, broken, failed, timed_out, verdict_of
from kubevnfm_worker.inbox import Claim, Finished, Inbox, LeaseLost, Queued, Taken, Wait
from kubevnfm_worker.lease import Course, keep_lease
from kubevnfm_worker.news import News, news_of_wait
from kubevnfm_worker.outcome import AbortHandler, C, CommandHandler, Done, NotYet, StepContext
from kubevnfm_worker.relay import OutboxRelay
from kubevnfm_worker.suspects import HandlerEndedProcess, Suspects
from kubevnfm_worker.waits import after_error, of_handler

log = structlog.get_logger()

_RETENTION: Final = timedelta(days=7)
_PURGE_EVERY_S: Final = 3600.0
_SHOW_EVERY_S: Final = 60.0
"""Another process may park a command of the service too."""
_REATTACH_S: Final = 1.0
"""Delay of a delivery that was returned to the broker while its handler is still running."""
_STORE_PAUSE_S: Final = 2.0
_TURN_WAIT_S, _TURN_PAUSE_S = 1.0, 2.0
"""How long a command waits here until a suspect was handled, and then in the broker."""
_STORE_TRY_EVERY_S: Final = 0.5
_LONGEST_SILENT_TRY_S: Final = 120.0
"""A try that ran longer had answers: each single call of a handler has a shorter timeout (OpenStack and SSH 60 s,
Kubernetes three times 30 s), or follows an answered one (an upload, a watch). So its error does not belong to the
silence before it."""


class CommandWorker:
    """Consumes the commands of one service: ``handle`` each, then ``start``.

    An async context manager that closes the worker at its end. Entering does not start it: handlers are added first.
    """

    def __init__(
        self,
        *,
        service: str,
        bus: MessageBus,
        store: DocumentStore,
        key_ring: KeyRing,
        lease_s: float = 15.0,
        hold_s: float = 240.0,
        concurrency: int = 64,
        drain_s: float = 5.0,
        unavailable_limit_s: float = 600.0,
        layer: str = "",
        clock: Clock | None = None,
        suspects: Suspects | None = None,
        owners: Owners | None = None,
        show_parked: Callable[[str, Sequence[JsonObject]], None] = lambda service, parked: None,
        metrics: Metrics | None = None,
    ) -> None:
        """Nothing is consumed before ``start``.

        ``lease_s``: how long a command stays assigned to a dead worker; ``hold_s``: how long a delivery waits for its
        handler before it is returned to the broker (the handler continues); ``drain_s``: how long closing waits for handlers;
        ``unavailable_limit_s``: a command fails when its tries have ended in OutsideUnavailable for so long, although
        its own deadline may be much later;
        ``layer``: the name of this part of the system in the failure event of a passed deadline; the service unless given;
        ``suspects``, ``owners``: of this process, if it has several workers; ``show_parked``: gets the service and its commands that are not
        handled any more, as `Inbox.parked` returns them; ``metrics``: of this process.
        """
        self._suspects, self._show_parked = suspects or Suspects(), show_parked
        self._service, self._bus, self._concurrency = service, bus, concurrency
        self._lease_s, self._hold_s, self._drain_s = lease_s, hold_s, drain_s
        self._unavailable_limit_s, self._layer = unavailable_limit_s, layer or service
        self._source = f"/kubevnfm/{service}"
        self._clock, owners = clock or SteadyClock(), owners or Owners()
        # Services that share a database must not sweep each other's outboxes, so the collection has the service's name.
        collection = f"inbox_{service.replace('-', '_')}"
        self._counts = CommandMetrics(metrics := metrics or Metrics(), service, self._clock)
        own = [collection]
        self._relay = OutboxRelay(store, bus, collections=own, clock=self._clock, owners=owners, metrics=metrics)
        self._inbox = Inbox(
            store,
            self._relay,
            key_ring,
            collection=collection,
            owner=f"{service}/{owners.new()}",
            lease_s=lease_s,
            clock=self._clock,
            suspects=self._suspects,
            owners=owners,
        )
        self._handlers: dict[type[Command], CommandHandler[Any]] = {}
        self._direct: dict[type[Command], Handler] = {}
        self._aborts: dict[type[Command], AbortHandler[Any]] = {}
        self._ring = key_ring
        self._nudges: dict[str, asyncio.Event] = {}
        """For each command that is handled here: set if its record must be read at once."""
        self._runs: dict[str, asyncio.Task[Verdict]] = {}
        self._news = News(bus, source=self._source)
        self._background: set[asyncio.Task[None]] = set()
        self._is_closing = False

    def handle(self, command: type[C], handler: CommandHandler[C], *, abort: AbortHandler[C] | None = None) -> None:
        """Register the handler of this command; before ``start``.

        ``abort`` is called when a command was cancelled (`CancelStep`) and its handler has been ended.
        """
        if self._handlers.setdefault(command, handler) is not handler:
            raise ValueError(f"{command.type}: already has a handler")
        if abort is not None:
            self._aborts[command] = abort

    def handle_direct(self, command: type[Command], handler: Handler) -> None:
        """Register a handler that gets every delivery of this command, without an inbox; before ``start``.

        For commands without a reply whose handler is idempotent and safe in races by itself.
        """
        if self._direct.setdefault(command, handler) is not handler:
            raise ValueError(f"{command.type}: already has a handler")

    async def start(self) -> None:
        """Start consuming; returns when the bus has accepted the consumer."""
        await self._inbox.prepare()
        self._relay.start()
        purge = partial(self._inbox.purge, older_than=_RETENTION)
        self._start_background(repeat(purge, every_s=_PURGE_EVERY_S), "inbox-purge")
        self._start_background(self._show_forever(), "inbox-parked")
        # Last: a command may be delivered before this call returns, and its outcome needs the index and the relay.
        await self._bus.consume_commands(self._service, self._take, concurrency=self._concurrency)

    async def close(self) -> None:
        """Accept no more commands, wait for handlers or cancel them and release their leases, publish stored outcomes."""
        self._is_closing = True
        if self._runs:
            _, unfinished = await asyncio.wait(self._runs.values(), timeout=self._drain_s)
            for run in unfinished:
                run.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
        background = [*self._news.tasks, *self._background]
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        # After the runs, whose outcomes it still publishes.
        await self._relay.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    # --- deliveries ---------------------------------------------------------------------------------------------------

    async def _take(self, delivery: Delivery) -> Verdict:
        """Start the command's work, or attach to the run that an earlier delivery started here."""
        command = delivery.envelope
        if (direct := self._direct.get(class_of(command))) is not None:
            with self._counts.handling(command):
                verdict = await direct(delivery)
            self._counts.direct(command, verdict)
            return verdict
        # A run under way may still end within the drain time; a new one would be cancelled at once.
        if self._is_closing and command.id not in self._runs:
            return Again(_REATTACH_S)
        if isinstance(command.data, CancelStep):
            return await self._cancel(command.data)
        # All deliveries of a command share one run: a redelivery after a lost channel attaches to it.
        run = self._run_of(command)
        # `wait` leaves the run alone at the timeout; `wait_for` would cancel it.
        done, _ = await asyncio.wait({run}, timeout=self._hold_s)
        if not done or run.cancelled():
            return Again(_REATTACH_S)
        return run.result()

    def _run_of(self, command: Envelope[Message]) -> asyncio.Task[Verdict]:
        """Return the run of the command in this process; starts one if there is none."""
        run = self._runs.get(command.id)
        if run is None:
            run = asyncio.create_task(self._run(command), name=f"run-{command.type}")
            self._runs[command.id] = run
            run.add_done_callback(lambda _: self._forget_run(command.id))
        return run

    def _forget_run(self, message_id: str) -> None:
        self._runs.pop(message_id, None)
        self._suspects.leave(message_id)

    async def _cancel(self, cancel: CancelStep) -> Verdict:
        """Mark the command as cancelled. Its worker sees the mark at once in this process, else when it renews the lease.

        A command that is waiting or was not delivered yet has no worker: it is claimed here and aborted.
        """
        # Decoding has turned the sealed values into Secret leaves; an envelope is read from its sealed form.
        command = from_document(sealed(cancel.command, self._ring))
        try:
            await self._inbox.mark_cancelled(command)
        except StoreUnavailable as error:
            log.debug("command_postponed", message_id=command.id, reason=str(error))
            return Again(_STORE_PAUSE_S)
        nudge = self._nudges.get(command.id)
        if nudge is not None:
            nudge.set()
        else:
            self._run_of(command)
        return Ack()

    async def _run(self, command: Envelope[Message]) -> Verdict:
        try:
            match await self._claim(command):
                case Finished() as finished:
                    # The sender may have repeated the command because it missed the outcome. A second copy costs little:
                    # consumers drop it by its id.
                    self._inbox.publish_again(command.id, finished)
                    return Ack()
                case Taken(for_s=for_s):
                    return Again(for_s)
                case Queued():
                    return Again(_TURN_PAUSE_S)
                case Claim(is_parked=True) as claim:
                    return await self._park(claim, command)
                case Claim() as claim:
                    if claim.fencing == 1:
                        self._counts.first_try(command)
                    elif claim.is_taken_over:
                        self._counts.taken_over()
                    return await self._held(claim, command)
        except StoreUnavailable as error:
            # Not a fault of the message, so it must not count as a failed delivery however long the database is away.
            log.debug("command_postponed", message_id=command.id, reason=str(error))
            return Again(_STORE_PAUSE_S)
        except LeaseLost:
            log.warning("lease_lost", message_id=command.id)
            return Again(self._lease_s)

    async def _claim(self, command: Envelope[Message]) -> Claim | Taken | Queued | Finished:
        left_s = self._left_s(command)
        # The bus has places for few deliveries, so one that waits for its turn soon gives its place to others.
        until = asyncio.get_running_loop().time() + _TURN_WAIT_S
        while True:
            found = await self._inbox.claim(command, in_any_case=left_s is not None and left_s <= 0)
            if not isinstance(found, Queued) or asyncio.get_running_loop().time() >= until:
                return found
            await self._suspects.change(until=until)

    async def _park(self, claim: Claim, command: Envelope[Message]) -> Verdict:
        """Fail the command, whose handling has ended the process again and again."""
        ended = HandlerEndedProcess(command.type, self._service, claim.ends)
        failure = failed(command.type, ended, made_nothing=False)
        # The dead letter keeps the message to find the reason with.
        verdict = await self._finish(claim, command, failure, None)
        with suppress(StoreUnavailable):  # shown a minute later
            await self._show()
        return verdict

    async def _held(self, claim: Claim, command: Envelope[Message]) -> Verdict:
        say_begun(command, claim)
        try:
            return await self._work(claim, command)
        except (LeaseLost, StoreUnavailable):
            # The record will say that the claim had no outcome, and this process has not ended.
            self._start_background(self._report_survival(claim), "inbox-survival")
            raise

    async def _report_survival(self, claim: Claim) -> None:
        while True:
            try:
                await self._inbox.survived(claim)
            except StoreUnavailable:
                await asyncio.sleep(_STORE_PAUSE_S)
            else:
                return

    async def _work(self, claim: Claim, command: Envelope[Message]) -> Verdict:
        try:
            with self._counts.handling(command):
                answer = await self._answer(claim, command)
        except asyncio.CancelledError:
            # The service ends: release the lease, so that the next worker need not wait for its expiry.
            await self._let_go(claim)
            raise
        made_nothing = claim.made_nothing and made_nothing_of(answer)
        match answer:
            case Done(event=event):
                return await self._finish(claim, command, event, answer)
            case NotYet(again_in_s=again_in_s, waits_for=waits_for):
                waits = of_handler(claim.waits, waits_for, self._clock.now())
                if waits is None:
                    await self._end_wait(claim, command, "finished")
                elif waits != claim.waits:
                    await self._report_wait(claim, command, waits, tries=0)
                await self._inbox.rest(claim, tries=0, waits=waits)
                self._counts.again(command, "wait", again_in_s)
                left_s = self._left_s(command)
                # Never beyond the deadline: the delivery that reports its passing must not come late.
                return Again(again_in_s if left_s is None else min(again_in_s, max(left_s, 0.0)))
            case DeadlinePassed():
                late = timed_out(command.type, self._layer, waits=claim.waits, made_nothing=made_nothing)
                return await self._finish(claim, command, late, answer)
            case VnfmError(retryable=True) if (retry := self._next_try(claim, command, answer)) is not None:
                await self._report_wait(claim, command, retry.waits, tries=claim.tries + 1)
                await self._inbox.rest(
                    claim,
                    tries=claim.tries + 1,
                    unavailable_since=retry.unavailable_since,
                    waits=retry.waits,
                    made_nothing=made_nothing,
                )
                self._counts.again(command, "error", retry.pause_s)
                return Again(retry.pause_s)
            case VnfmError():
                failure = failed(command.type, answer, made_nothing=made_nothing)
                return await self._finish(claim, command, failure, answer)
            case Broke():
                # The event ends the operation's step at once; the dead letter keeps the message to find the bug
                # with.
                return await self._finish(claim, command, broken(command.type, self._service), answer)

    def _next_try(self, claim: Claim, command: Envelope[Message], error: VnfmError) -> Retry | None:
        """Return when the next try is; None when the command has failed."""
        tries, now = claim.tries + 1, self._clock.now()
        pause_s = RETRY.after(tries)
        since: datetime | None = None
        if isinstance(error, OutsideUnavailable):
            since = self._silent_since(claim) or now
            # Wall time, as for the deadline: the time during which no worker was running counts too.
            if (now - since).total_seconds() >= self._unavailable_limit_s:
                return None
        left_s = self._left_s(command)
        # A pause that ends after the deadline would turn the real cause into a plain time-out.
        is_worth_it = tries < NO_DEADLINE_TRIES if left_s is None else pause_s < left_s
        return Retry(pause_s, since, after_error(claim.waits, error, now)) if is_worth_it else None

    async def _report_wait(self, claim: Claim, command: Envelope[Message], waits: Wait, *, tries: int) -> None:
        """Say, also to those who watch the operation, why and since when the command makes no progress."""
        say_waits(command, claim.waits, waits, tries=tries)
        state: Literal["started", "progressed"] = "started" if claim.waits is None else "progressed"
        await self._context(claim, command).publish(news_of_wait(waits, state, tries=tries))

    async def _end_wait(self, claim: Claim, command: Envelope[Message], state: Literal["finished", "failed"]) -> None:
        """Publish that the wait is over, if there was one."""
        if claim.waits is not None:
            await self._context(claim, command).publish(news_of_wait(claim.waits, state))

    def _silent_since(self, claim: Claim) -> datetime | None:
        """Return when the silence before the present try began; None if there was none or the try has had answers."""
        had_answers = (self._clock.now() - claim.claimed_at).total_seconds() > _LONGEST_SILENT_TRY_S
        return None if had_answers else claim.unavailable_since

    def _left_s(self, command: Envelope[Message]) -> float | None:
        if command.deadline is None:
            return None
        left_s = (command.deadline - self._clock.now()).total_seconds()
        # Never more than when it was sent, even if the sender's clock is ahead.
        return min(left_s, max((command.deadline - command.time).total_seconds(), 0.0))

    # --- the handler's run --------------------------------------------------------------------------------------------

    async def _answer(self, claim: Claim, command: Envelope[Message]) -> Answer:
        """Run the handler under the lease and the deadline. Raises LeaseLost."""
        left_s = self._left_s(command)
        if left_s is not None and left_s <= 0:
            # Checked before the handler is called: after the deadline the step has failed for its sender, and starting
            # would create what is never used.
            return DeadlinePassed(has_begun=False)
        handler = self._handlers.get(class_of(command))
        if handler is None:
            return Broke(LookupError(f"{self._service} has no handler for {command.type}"))
        if claim.is_cancelled:
            if not claim.made_nothing:
                return await self._aborted(claim, command)
            cancelled = StepCancelled(None)
            cancelled.made_nothing = True
            return cancelled
        course = Course(nudge=asyncio.Event())
        self._nudges[command.id] = course.nudge
        # Until the handler ends: the delivery, which binds the step too, may end before it.
        with live_spans.under(step_of(command)):
            return await self._handled(handler, claim, command, course, left_s)

    async def _handled(
        self,
        handler: CommandHandler[Any],
        claim: Claim,
        command: Envelope[Message],
        course: Course,
        left_s: float | None,
    ) -> Answer:
        """As `_answer`."""
        work = asyncio.create_task(called(handler, command, self._context(claim, command, course)), name=command.type)
        keeping = asyncio.create_task(
            keep_lease(self._inbox, self._suspects, claim, course, self._lease_s, partial(self._silent_since, claim)),
            name="lease",
        )
        try:
            # Whichever comes first decides: the answer, the loss of the lease (or a cancellation), or the deadline.
            await asyncio.wait({work, keeping}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return answer_of(work)
            if not keeping.done():
                return DeadlinePassed(has_begun=True)
            if not keeping.result():
                raise LeaseLost(claim.message_id)
        finally:
            del self._nudges[command.id]
            work.cancel()
            keeping.cancel()
            await asyncio.gather(work, keeping, return_exceptions=True)
        return await self._aborted(claim, command)

    async def _aborted(self, claim: Claim, command: Envelope[Message]) -> Answer:
        """Abort a cancelled command: stop the outside system's work, under the lease as the work itself. Raises LeaseLost."""
        abort = self._aborts.get(class_of(command))
        # The lease is not renewed meanwhile, so the abort must end well before it expires.
        return await aborted(abort, command, self._context(claim, command), within_s=self._lease_s / 2)

    def _context(self, claim: Claim, command: Envelope[Message], course: Course | None = None) -> StepContext:
        async def publish(event: Event) -> None:
            if course is not None and course.follow(event) and claim.ends:
                course.nudge.set()
            self._news.send(command, event)

        return StepContext(
            message_id=command.id,
            operation_id=command.operationid,
            step_id=command.stepid,
            attempt=command.attempt,
            subject=command.subject,
            deadline=command.deadline,
            fencing=claim.fencing,
            publish=publish,
        )

    # --- the end ------------------------------------------------------------------------------------------------------

    async def _finish(self, claim: Claim, command: Envelope[Message], event: Event, answer: Answer | None) -> Verdict:
        """Store the outcome; while the database is away, retry as long as the lease lasts. ``answer``: None if it was parked."""
        await self._end_wait(claim, command, "failed" if isinstance(event, CommandFailed) else "finished")
        deadline = asyncio.get_running_loop().time() + self._lease_s
        while True:
            try:
                await self._inbox.finish(claim, command, event, source=self._source)
            except StoreUnavailable:
                if asyncio.get_running_loop().time() >= deadline:
                    raise
                await asyncio.sleep(_STORE_TRY_EVERY_S)
            else:
                say_ended(command, claim, event, answer, self._clock.now())
                verdict = verdict_of(answer, event, self._service)
                self._counts.ended(command, event, verdict, is_parked=claim.is_parked)
                return verdict

    async def _let_go(self, claim: Claim) -> None:
        try:
            # The process is ending: a lease that is not released expires by itself.
            async with asyncio.timeout(1.0):
                await self._inbox.rest(
                    claim,
                    tries=claim.tries,
                    unavailable_since=self._silent_since(claim),
                    waits=claim.waits,
                    is_outcome=False,
                )
        except (LeaseLost, StoreUnavailable, TimeoutError):
            log.debug("lease_left_to_run_out", message_id=claim.message_id)

    def _start_background(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _show(self) -> None:
        parked = await self._inbox.parked()
        self._counts.parked(len(parked))
        self._show_parked(self._service, parked)

    async def _show_forever(self) -> None:
        while True:
            try:
                await self._show()
            except StoreUnavailable as error:
                log.debug("parked_not_read", reason=str(error))
            await asyncio.sleep(_SHOW_EVERY_S)
