"""curl and wget to the outside: configured content and package keys; any other host is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from kubevnfm_lab.machines.programs.call import Call, Exit, Failed, Options, Program, options
from kubevnfm_lab.machines.wordlist import words

CURL_WITH_VALUE = words(
    "-o --output -H --header -d --data --retry --retry-delay --retry-max-time --connect-timeout -m --max-time -x --proxy "
    "--cacert -u --user -w --write-out -X --request -A --noproxy --output-dir --proto"
)
WGET_WITH_VALUE = words("-O --output-document -P --directory-prefix -t --tries -T --timeout -e")
KEY = b"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nlab\n-----END PGP PUBLIC KEY BLOCK-----\n"
KEY_NAMES = ("Release.key", "gpg", "*.gpg", "*.asc", "*.key")


def _content(call: Call, url: str) -> bytes | None:
    known = call.world.settings.content_by_url
    found = next((content for pattern, content in known.items() if fnmatchcase(url, pattern)), None)
    if found is None and any(fnmatchcase(PurePosixPath(urlsplit(url).path).name, name) for name in KEY_NAMES):
        # The lab's package repository is not signed, so any key will do.
        return KEY
    return found


async def curl(call: Call) -> Exit:
    """Curl with -f, -s, -S, -L, -o, -O and -w."""
    given = options(call.args, with_value=CURL_WITH_VALUE)
    silent = given.has("-s", "--silent") and not given.has("-S", "--show-error")
    output = b""
    for url in given.words:
        content = _content(call, url)
        if content is None:
            host = urlsplit(url if "://" in url else f"http://{url}").hostname or url
            raise Failed("" if silent else f"curl: (6) Could not resolve host: {host}", 6)
        name = given.get("-o", "--output") or (
            PurePosixPath(urlsplit(url).path).name if given.has("-O", "--remote-name") else ""
        )
        if not name or name == "-":
            output += content
        else:
            _save(call, name, content, 23, f"curl: (23) Failed writing body: {name}")
    form = given.get("-w", "--write-out").replace("%{http_code}", "200").replace("\\n", "\n")
    return Exit(0, output + form.encode())


async def wget(call: Call) -> Exit:
    """Wget with -q, -O and -P."""
    given = options(call.args, with_value=WGET_WITH_VALUE)
    output = b""
    for url in given.words:
        content = _content(call, url)
        if content is None:
            host = urlsplit(url).hostname or url
            raise Failed("" if given.has("-q") else f"wget: unable to resolve host address '{host}'", 4)
        name = _target(given, url)
        if name == "-":
            output += content
        else:
            _save(call, name, content, 3, f"{name}: No such file or directory")
    return Exit(0, output)


def _target(given: Options, url: str) -> str:
    own = PurePosixPath(urlsplit(url).path).name or "index.html"
    folder = given.get("-P", "--directory-prefix")
    return given.get("-O", "--output-document") or (f"{folder}/{own}" if folder else own)


def _save(call: Call, name: str, content: bytes, code: int, complaint: str) -> None:
    target = call.path(name)
    if not target.parent.is_dir():
        raise Failed(complaint, code)
    target.write_bytes(content)


PROGRAMS: Mapping[str, Program] = {"curl": curl, "wget": wget}
