"""Waits until an operation has ended or waits for an operator: the state first, then the events after it.

A wait ends at once if there is nothing to wait for. It survives restarts of the gateway, and re-reads the state with each heartbeat, so it
misses no end. It never changes the operation: after an interruption, the same command goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from kubevnfm_cli import drawing, lines
from kubevnfm_cli.call import Call
from kubevnfm_cli.events import AGAIN, Event, Stream, Tick
from kubevnfm_cli.faults import DONE, WITHOUT_SUCCESS, Fault, Refused, Stopped, UsageFault
from kubevnfm_cli.gateway import Gateway, path_of
from kubevnfm_cli.progress import STEP_STATES, WAIT, Operation
from kubevnfm_cli.terminal import Screen, printable

if TYPE_CHECKING:
    from rich.text import Text

SUCCESS: Final = frozenset({"COMPLETED"})
_REMEMBERED: Final = 2000
_AGAIN_S: Final = 3.0
"""A worker says often that it waits; the state, which has the cause, is read at most once in that time."""
_PAUSE_S: Final = 0.5
_UNAFFECTED: Final = "the operation is not affected"


class Show(Protocol):
    """The view of a person while an operation is followed."""

    def begin(self, operation: Operation) -> None:
        """Show what has happened so far."""
        ...

    def event(self, event: Event, operation: Operation) -> None:
        """Show an event."""
        ...

    def state(self, operation: Operation) -> None:
        """Show a state that was read again."""
        ...

    def trouble(self, text: str) -> None:
        """Show that the gateway went away, or is there again."""
        ...


def read_operation(gateway: Gateway, operation_id: str) -> Operation:
    """Return an operation. Raises Refused, Unreachable."""
    return Operation(gateway.get(path_of("kubevnfm", "v1", "operations", operation_id)).object())


def follow(gateway: Gateway, operation_id: str, show: Show, *, is_begun: bool = False) -> Operation:
    """Return an operation once it rests. Raises Stopped at the end of the gateway's time, Refused, Unreachable at the begin.

    ``is_begun``: the gateway has just accepted it, and may be away at the begin too.
    """
    operation = _accepted(gateway, operation_id, show) if is_begun else read_operation(gateway, operation_id)
    show.begin(operation)
    if operation.rests:
        return operation
    after = operation.view.get("sequence")
    stream = Stream(
        gateway,
        {"operation": operation_id},
        after=str(after) if after else None,
        trouble=lambda text: show.trouble(text if text == AGAIN else f"{text}; {_UNAFFECTED}"),
        is_known=True,
    )
    seen: dict[str, None] = {}
    read_at = time.monotonic()
    for one in stream:
        # The stream replays what happened while there was no connection, so its opening needs no look.
        must_read = one in (Tick.ALIVE, Tick.MISSED)
        if isinstance(one, Event):
            event_id = str(one.body.get("id"))
            if event_id in seen:
                continue
            seen[event_id] = None
            if len(seen) > _REMEMBERED:
                del seen[next(iter(seen))]
            operation.apply(one)
            show.event(one, operation)
            is_wait = one.data.get("task") == WAIT or one.data.get("state") == "failed"
            must_read = operation.rests or (is_wait and time.monotonic() - read_at > _AGAIN_S)
        if not must_read:
            continue
        read_at = time.monotonic()
        found = _read_again(gateway, operation_id)
        if found is not None:
            operation = found
            show.state(operation)
            if operation.rests:
                return operation
    raise AssertionError("a stream goes on without end")


def _accepted(gateway: Gateway, operation_id: str, show: Show) -> Operation:
    """Return an operation that exists, as soon as the gateway answers."""
    is_away = False
    while (operation := _read_again(gateway, operation_id)) is None:
        if not is_away:
            show.trouble(f"the gateway does not answer now; trying again; {_UNAFFECTED}")
        is_away = True
        gateway.pause(_PAUSE_S)
    if is_away:
        show.trouble(AGAIN)
    return operation


def _read_again(gateway: Gateway, operation_id: str) -> Operation | None:
    """Return the operation; None if the gateway does not answer now: the stream will say so."""
    try:
        return read_operation(gateway, operation_id)
    except Refused as refused:
        if refused.status < 500 and refused.status != 429:
            raise
    except Fault as fault:
        if isinstance(fault, UsageFault):
            raise
    return None


class Lines:
    """One line an event, for logs."""

    def __init__(self, say: Callable[[str], None], trouble: Callable[[str], None]) -> None:
        self._say = say
        self._trouble = trouble
        self._cause: Sequence[str] = ()
        self._known: set[object] = set()
        self._state: object = None

    def begin(self, operation: Operation) -> None:
        """Show what has happened so far."""
        for line in lines.lines_so_far(operation):
            self._say(line)
        self._state = operation.state
        self._known = {
            (str(step.get("name")), str(step.get("state")), str(step.get("attempt"))) for step in operation.steps
        }
        self.state(operation)

    def event(self, event: Event, operation: Operation) -> None:
        """Show an event, unless the state at the begin had it already."""
        data = event.data
        if event.kind == "lcm.step.changed":
            state = str(data.get("state"))
            if (str(data.get("step")), STEP_STATES.get(state, state), str(data.get("attempt", 1))) in self._known:
                return
        if event.kind == "lcm.operation.changed":
            if data.get("state") == self._state:
                return
            self._state = data.get("state")
        line = lines.line_of(event)
        if line is not None:
            self._say(line)

    def state(self, operation: Operation) -> None:
        """Show what blocks it, if that has changed."""
        cause = operation.view.get("cause")
        text = [str(cause.get("text"))] if isinstance(cause, dict) else []
        if text != self._cause and not operation.rests:
            for line in lines.cause_lines(operation.view) if text else ():
                self._say(f"{lines.now_text()} waits: {line}")
            self._cause = text

    def trouble(self, text: str) -> None:
        """Show a banner."""
        self._trouble(f"{lines.now_text()} {text}")


class Live:
    """A view in the terminal that is drawn again as long as the operation is followed."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._operation: Operation | None = None
        self._banner = ""

    @contextmanager
    def drawn(self) -> Iterator[None]:
        """Draw until the end of the block."""
        from rich.console import Console
        from rich.live import Live as RichLive

        # Our own texts have their colours already, and no foreign one is markup.
        console = Console(
            file=self._screen.stream, markup=False, highlight=False, emoji=False, no_color=not self._screen.has_colours
        )
        with RichLive(get_renderable=self._drawing, console=console, refresh_per_second=4, transient=True):
            yield

    def _drawing(self) -> Text:
        from rich.text import Text

        if self._operation is None:
            return Text("")
        room = max(self._screen.lines - 2, 5)
        shown = drawing.operation_lines(self._screen, self._operation, is_whole=False, room=room)
        text = Text.from_ansi(
            "\n".join([*shown, *([self._screen.paint(self._banner, "yellow")] if self._banner else [])])
        )
        text.no_wrap, text.overflow = True, "ellipsis"
        return text

    def begin(self, operation: Operation) -> None:
        """Show what has happened so far."""
        self._operation = operation

    def event(self, event: Event, operation: Operation) -> None:
        """Show an event."""
        self._operation = operation

    def state(self, operation: Operation) -> None:
        """Show a state that was read again."""
        self._operation = operation

    def trouble(self, text: str) -> None:
        """Show a banner below the view, until the gateway answers again."""
        self._banner = "" if text == AGAIN else printable(text, 500)


def wait(
    call: Call,
    operation_id: str,
    *,
    timeout_s: float | None,
    is_own_output: bool,
    success: frozenset[str] = SUCCESS,
) -> int:
    """Follow an operation, show it, and return the exit code of how it ended.

    ``is_own_output``: the events are what the command is for, and go to standard output. Raises Stopped, Refused, Unreachable.
    """
    screen = call.out if is_own_output and call.format.is_for_people else call.err
    call.gateway.give_up_after(timeout_s)
    with ExitStack() as drawn:
        show: Show
        if screen.can_redraw:
            show = live = Live(screen)
            drawn.enter_context(live.drawn())
        else:
            show = Lines(screen.say, call.note)
        try:
            operation = follow(call.gateway, operation_id, show, is_begun=not is_own_output)
        except (Stopped, KeyboardInterrupt, BrokenPipeError) as stopped:
            drawn.close()
            why = f"not ended after {timeout_s:g} s" if isinstance(stopped, Stopped) else "interrupted"
            raise Stopped(
                f"{why}; the operation goes on: kubevnfm wait op {operation_id} waits again, kubevnfm cancel {operation_id} cancels it"
            ) from stopped
    if isinstance(show, Live):
        for line in drawing.result_lines(screen, operation):
            screen.say(line)
    if call.format.is_for_people:
        for line in drawing.verdict(call.out, operation):
            call.out.say(line)
    else:
        from kubevnfm_cli.nouns import noun_of
        from kubevnfm_cli.output import show_one

        show_one(call, operation.view, noun_of("op").table)
    return DONE if operation.state in success else WITHOUT_SUCCESS
