"""The entry: finds the verb, and imports nothing but it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, NoReturn, TextIO

from kubevnfm_cli import plugins
from kubevnfm_cli.commands import VERBS

_VALUES: Final = ("--context", "--url", "-o", "--output")
"""The global options that have a value: they may be before the verb too."""
_HELP: Final = ("-h", "--help", "help")


class Streams(NamedTuple):
    """Standard output and standard error of a command."""

    out: TextIO
    err: TextIO


def main() -> NoReturn:
    """Run the command line."""
    try:
        # A closed one is None: what is opened in its place takes its number, so that no socket does.
        streams = Streams(*(stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr)))  # noqa: PTH123, SIM115
        for stream in streams:
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8
        code = run([_utf8(word) for word in sys.argv[1:]], os.environ, streams)
    except KeyboardInterrupt:  # before or after the verb
        code = 3
    except OSError:  # standard error itself cannot be written
        from kubevnfm_cli.terminal import end_quietly

        end_quietly()
        code = 1
    sys.exit(code)


def _utf8(word: str) -> str:
    """Return a word as UTF-8, also where the locale is another one; a word that is none stays as it came, as names of files may be."""
    try:
        return os.fsencode(word).decode()
    except UnicodeError:
        return word


def run(words: Sequence[str], environment: Mapping[str, str], streams: Streams) -> int:
    """Run a command; return its exit code."""
    if words and words[0] not in VERBS and words[0] not in _HELP:
        path = plugins.path_of(words[0], environment)
        if path is not None:
            plugins.run(path, words[1:])
    place = _place_of_verb(words)
    verb = words[place] if place < len(words) else None
    if verb == "help" and place + 1 < len(words):
        return run([*words[place + 1 :], "--help"], environment, streams)
    if verb in (None, "help"):
        return _without_verb(words[:place], environment, streams)
    assert verb is not None
    if verb not in VERBS:
        return _unknown(verb, environment, streams)
    return _guarded(verb, [*words[:place], *words[place + 1 :]], environment, streams)


def _place_of_verb(words: Sequence[str]) -> int:
    """Return where the first word is that is no global option."""
    place = 0
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _VALUES else 1
    return place


def _without_verb(options: Sequence[str], environment: Mapping[str, str], streams: Streams) -> int:
    if "--version" in options:
        return _guarded("version", [], environment, streams)
    is_asked = not options or any(option in _HELP for option in options)
    stream = streams.out if is_asked else streams.err
    try:
        stream.write(_help(environment))
        stream.flush()
    except BrokenPipeError:
        from kubevnfm_cli.terminal import end_quietly

        end_quietly()
    return 0 if is_asked else 2


def _help(environment: Mapping[str, str]) -> str:
    from kubevnfm_cli.faults import MEANINGS

    lines = ["usage: kubevnfm VERB ... (kubevnfm VERB --help says more)", ""]
    for group in dict.fromkeys(verb.group for verb in VERBS.values()):
        lines.append(f"{group}:")
        lines += [f"  {name:<16}{verb.summary}" for name, verb in VERBS.items() if verb.group == group]
        lines.append("")
    found = plugins.names(environment)
    if found:
        lines += [f"Plug-ins (executables kubevnfm-NAME): {', '.join(found)}", ""]
    lines.append("Exit codes:")
    lines += [f"  {code}  {meaning}" for code, meaning in MEANINGS.items()]
    return "".join(f"{line}\n" for line in lines)


def _unknown(verb: str, environment: Mapping[str, str], streams: Streams) -> int:
    if plugins.path_of(verb, environment) is not None:
        streams.err.write(f"kubevnfm: {verb} is a plug-in: its name comes first, its options behind it\n")
        return 2
    from kubevnfm_cli.names import nearest
    from kubevnfm_cli.terminal import printable

    near = nearest(verb, VERBS)
    hint = f"; did you mean {near}?" if near else "; kubevnfm --help lists the verbs"
    streams.err.write(f"kubevnfm: {printable(verb)} is no verb and no plug-in{hint}\n")
    return 2


def _guarded(verb: str, words: Sequence[str], environment: Mapping[str, str], streams: Streams) -> int:
    """Run a verb; its faults become one line and an exit code."""
    import importlib

    from kubevnfm_cli import faults
    from kubevnfm_cli.call import Call, Parser
    from kubevnfm_cli.terminal import LINE, end_quietly, printable

    try:
        module = importlib.import_module(VERBS[verb].module)
        parser = Parser(verb, VERBS[verb].summary, streams.out)
        module.arguments(parser)
        call = Call(verb, parser.parse_args(words), environment, streams)
        assert call.format  # a wrong one is refused before anything is asked
        code = int(module.run(call))
        streams.out.flush()
    except faults.Fault as fault:
        streams.err.write(f"kubevnfm: {printable(fault, LINE)}\n")
        return fault.code
    except SystemExit as ended:  # argparse has shown its help
        return int(ended.code or 0)
    except BrokenPipeError:
        # The reader has what it wanted: `| head`.
        end_quietly()
        return faults.DONE
    except KeyboardInterrupt:
        streams.err.write("\nkubevnfm: interrupted\n")
        return faults.STOPPED
    except UnicodeError:  # bytes of a word or of the environment, of which a request cannot be made
        streams.err.write("kubevnfm: a word of the command, or a variable of the environment, is not UTF-8\n")
        return faults.USAGE
    except OSError as error:  # a file of the user
        streams.err.write(f"kubevnfm: {printable(error, LINE)}\n")
        return faults.FAILED
    return code
