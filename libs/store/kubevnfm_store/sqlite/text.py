"""Bodies as JSON text, and paths in SQLite's notation.

A JSON path of SQLite compares names with the raw text of the document and cannot hold a quote or a backslash (before
3.45), so names with such characters are written escaped; hardly any document has one, and other texts are stored unchanged.
"""

from __future__ import annotations

import json
import re
from typing import Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_store.names import Alphabet, read_tree
from kubevnfm_store.query import names_of

ALPHABET: Final = Alphabet(re.compile(r'[%"\\\x00-\x1f]'))
_MAY_NEED_ESCAPING: Final = re.compile(r'[%\\]|"":')
"""In JSON text every unsafe character of a name shows as one of these (so do harmless ones in values)."""


def dumped(body: JsonMapping) -> str:
    """Return the body as stored. Raises InvalidInput if it is not JSON (NaN, other types, lone surrogates)."""
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        # A scan of the text is much cheaper than a walk over the tree, which hardly any document needs.
        if _MAY_NEED_ESCAPING.search(text):
            text = json.dumps(ALPHABET.tree(body), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput("body", "a text in it is not valid Unicode") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput("body", f"not JSON: {error}") from error
    return text


def loaded(text: str) -> JsonObject:
    """Return the body of a stored text."""
    body: JsonObject = json.loads(text)
    return read_tree(body) if "%" in text else body


def json_path(path: str) -> str:
    """Return SQLite's notation of a path: ``a/b`` is ``$."a"."b"``."""
    return "$" + "".join(f'."{ALPHABET.written(name)}"' for name in names_of(path))


def literal(text: str) -> str:
    """Return the text as an SQL literal, where a bound parameter would hide an index from the planner."""
    return "'" + text.replace("'", "''") + "'"


def extract(path: str) -> str:
    """Return the expression of indexes, always in the same spelling: the planner recognises no other."""
    return f"json_extract(body, {literal(json_path(path))})"


def type_of(path: str) -> str:
    """Return the expression for the JSON type at the path: ``text``, ``integer`` ... or NULL."""
    return f"json_type(body, {literal(json_path(path))})"


def is_there(path: str) -> str:
    """Return the condition that a path without arrays has a value; a partial index serves it in this spelling only."""
    return f"{type_of(path)} <> 'null'"
