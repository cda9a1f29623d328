"""Bodies of requests: a file or standard input for all of it, flags for common things, ``--set`` for ``additionalParams``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kubevnfm_cli.call import Parser
from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.json_types import JsonObject
from kubevnfm_cli.terminal import printable
from kubevnfm_cli.yaml_reader import LARGEST
from kubevnfm_cli.yaml_text import read_documents

if TYPE_CHECKING:
    from kubevnfm_cli.schema_text import Form

_KEY: Final = re.compile(r"(?:[^.\\]|\\.)+")


def add_body_options(parser: Parser, *, has_parameters: bool = True) -> None:
    """Add ``-f``, ``--set`` and ``--set-string``."""
    parser.add_argument(
        "-f",
        "--file",
        metavar="FILE",
        help="the request's body as JSON or YAML; - is standard input; flags replace parts of it",
    )
    if has_parameters:
        parser.add_argument(
            "--set",
            metavar="KEY=VALUE",
            action="append",
            default=[],
            help="in additionalParams, with the type that the package says, or else read as YAML; a.b=1 is below a, a\\.b=1 is the key a.b; repeatable",
        )
        parser.add_argument(
            "--set-string", metavar="KEY=TEXT", action="append", default=[], help="as --set, and always a text"
        )
        parser.add_argument(
            "--set-file",
            metavar="KEY=FILE",
            action="append",
            default=[],
            help="as --set-string, read from a file: for secrets",
        )


def read_body(file: str | None) -> JsonObject:
    """Return the body in a file; an empty one without. Raises UsageFault with file, line and column."""
    if file is None:
        return {}
    source = "standard input" if file == "-" else file
    try:
        text = sys.stdin.read(LARGEST + 1) if file == "-" else _bounded(Path(file))
    except OSError as error:
        raise UsageFault(f"{source}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise UsageFault(f"{source}: UTF-8 expected") from None
    documents = read_documents(text, source)
    if not documents and text.strip():
        return {}  # comments alone, as a template has them of which nothing was taken in
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise UsageFault(f"{source}: one document expected, which is an object")
    return documents[0]


def _bounded(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(LARGEST + 1)


def check_words(given: Any) -> None:
    """Raise UsageFault if a word of ``--set``, ``--set-string`` or ``--set-file`` is no ``KEY=VALUE``."""
    for option in ("set", "set_string", "set_file"):
        for word in getattr(given, option):
            _names(_pair(word, f"--{option.replace('_', '-')}")[0])


def with_parameters(
    body: JsonObject, given: Any, form: Form | None = None, *, name: str = "additionalParams"
) -> JsonObject:
    """Return the body with what ``--set``, ``--set-string`` and ``--set-file`` say. Raises UsageFault.

    ``form``: of the request; with it, a field that is a text gets what was written.
    """
    from kubevnfm_cli.forms import check_is_parameter, type_at, value_of

    parameters = dict(body.get(name) or {})
    for option, words in (("--set", given.set), ("--set-string", given.set_string), ("--set-file", given.set_file)):
        for word in words:
            check_is_parameter(form, name, _names(_pair(word, option)[0])[0], option)
    for word in given.set:
        key, text = _pair(word, "--set")
        source = f"--set {printable(key)} (--set-string takes any text)"
        names = _names(key)
        _put(parameters, names, value_of(text, type_at(form, [name, *names]), source), key)
    for word in given.set_string:
        key, text = _pair(word, "--set-string")
        _put(parameters, _names(key), text, key)
    for word in given.set_file:
        key, file = _pair(word, "--set-file")
        try:
            _put(parameters, _names(key), _bounded(Path(file)), key)
        except OSError as error:
            raise UsageFault(f"--set-file {printable(key)}: {file}: {error.strerror}") from error
        except UnicodeDecodeError:
            raise UsageFault(f"--set-file {printable(key)}: {file}: UTF-8 expected") from None
    return {**body, name: parameters} if parameters else body


def merged(body: JsonObject, flags: Mapping[str, object]) -> JsonObject:
    """Return the body with the flags that were given in the place of its parts."""
    return {**body, **{name: value for name, value in flags.items() if value is not None}}


def key_values(words: Sequence[str], option: str) -> dict[str, str] | None:
    """Return ``KEY=VALUE`` words as an object; None if there are none. Raises UsageFault."""
    return dict(_pair(word, option) for word in words) or None


def _pair(word: str, option: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals or not key:
        # The value may be a secret, so the word is not shown.
        raise UsageFault(f"{option}: KEY=VALUE expected")
    return key, value


def _names(key: str) -> list[str]:
    """Return the names that are divided by dots. Raises UsageFault."""
    names = [part.replace("\\.", ".") for part in _KEY.findall(key)]
    if not names or ".".join(part.replace(".", "\\.") for part in names) != key:
        raise UsageFault(f"--set {printable(key)}: names divided by dots expected")
    return names


def _put(parameters: dict[str, Any], names: Sequence[str], value: Any, key: str) -> None:
    inner = parameters
    for name in names[:-1]:
        below = inner.get(name)
        if below is not None and not isinstance(below, dict):
            raise UsageFault(f"--set {printable(key)}: {printable(name)} is not an object")
        inner[name] = inner = dict(below or {})
    inner[names[-1]] = value
