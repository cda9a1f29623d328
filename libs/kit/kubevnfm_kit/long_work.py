"""Work on large values, which would hold the event loop: it runs in a thread, and lets the loop run meanwhile.

One thread for all of it: several would not be faster, as one at a time holds the interpreter, and the loop would wait for each of them.
A long call into C gives the interpreter to no other thread before its end, so large JSON is written and read in pieces.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from types import NoneType
from typing import Any, Final, ParamSpec, TypeVar

from pydantic import BaseModel

P = ParamSpec("P")
T = TypeVar("T")

LARGE_TEXT: Final = 65_536
"""Characters of JSON from which on reading takes milliseconds."""
_LARGE: Final = 1000
"""Nodes of a tree from which on work on it takes milliseconds."""
_NODE: Final = 256
"""Characters of a text that take as long as a node."""
_LEAVES: Final = frozenset({int, float, bool, NoneType})
_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="long-work")


async def aside(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of work of the processor, done in the thread. It must not wait for anything, and not for the loop."""
    call = partial(copy_context().run, work, *args, **named)
    return await asyncio.get_running_loop().run_in_executor(_THREAD, call)


async def aside_if_large(value: object, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of work on a value: done in the thread if the value is large, otherwise at once."""
    return await aside(work, *args, **named) if is_large(value) else work(*args, **named)


def is_large(value: object) -> bool:
    """Return whether work on a tree of mappings, lists and models takes milliseconds. A large one is not walked to its end."""
    left, waiting = _LARGE, [value]
    while waiting and left > 0:
        node = waiting.pop()
        if isinstance(node, str | bytes):
            left -= len(node) // _NODE
            continue
        inner = _inner(node)
        left -= len(inner) + 1
        if left <= 0:
            break
        for each in inner:
            # Most are short texts and numbers: nothing is called for them.
            kind = type(each)
            if kind is str:
                left -= len(each) // _NODE  # type: ignore[arg-type]  # mypy does not narrow by `kind`
            elif kind not in _LEAVES:
                waiting.append(each)
    return left <= 0


def _inner(node: object) -> Collection[object]:
    if isinstance(node, Mapping):
        return node.values()
    if isinstance(node, list | tuple):
        return node
    return node.__dict__.values() if isinstance(node, BaseModel) else ()


def json_text(value: Any) -> str:
    """Return the JSON of a value without spaces; that of a large one is written in pieces. Raises as `json.dumps`."""
    return "".join(_pieces(value))


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple) and is_large(value):
        yield "["
        for number, each in enumerate(value):
            if number:
                yield ","
            yield from _pieces(each)
        yield "]"
    elif isinstance(value, dict) and is_large(value) and all(isinstance(name, str) for name in value):
        yield "{"
        for number, (name, each) in enumerate(value.items()):
            yield f"{',' if number else ''}{_ENCODER.encode(name)}:"
            yield from _pieces(each)
        yield "}"
    else:
        yield _ENCODER.encode(value)


def passed(node: dict[str, Any]) -> dict[str, Any]:
    """Return an object as it was read: the ``object_hook`` of a reader that lets other threads run between objects."""
    return node


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
