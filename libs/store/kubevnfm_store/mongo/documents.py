"""The form of a document in MongoDB.

Its attributes are ``_id``, ``revision``, ``body`` (names escaped) and ``write`` (the token of the last write, by which
a repeated write recognises itself). While messages wait to be published it has ``outbox`` (array of ``{id, content}``,
content as JSON text) and ``pending`` (true, for the index). A deleted document with such messages keeps only those and
is marked ``deleted``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping, JsonObject

from kubevnfm_store.names import Alphabet, read_tree
from kubevnfm_store.port import Outgoing
from kubevnfm_store.query import Stored, names_of

ALPHABET: Final = Alphabet(re.compile(r"[%.\x00]|^\$|^\d(?=\d*$)"), wrap_arrays=True)
"""No dots and leading dollars (operators), no lone digits (a path would read them as an array's index)."""
WRAPPED: Final = "%["
LIVE: Final[JsonMapping] = {"deleted": {"$exists": False}}


def field(path: str) -> str:
    """Return MongoDB's notation of a path: ``a/b`` is ``a.b``."""
    return ".".join(ALPHABET.written(name) for name in names_of(path))


def in_body(path: str) -> str:
    """Return the notation of a path from the document's root."""
    return f"body.{field(path)}"


def written(value: Any) -> Any:
    """Return a JSON value as MongoDB holds it. Raises InvalidInput if it is not JSON; the driver refuses integers above 64 bits."""
    try:
        # Written and read back: what is stored equals what a reader gets from SQLite. `encode` finds lone surrogates,
        # which BSON cannot hold.
        plain = json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("body", "a text in it is not valid Unicode") from error
    except (TypeError, ValueError) as error:
        raise InvalidInput("body", f"not JSON: {error}") from error
    return ALPHABET.tree(plain)


def stored(document: JsonMapping) -> Stored:
    """Return the document in the port's form."""
    return Stored(document["_id"], int(document["revision"]), read_tree(document.get("body", {})))


def entries(outbox: Sequence[Outgoing]) -> list[dict[str, str]]:
    """Return messages in the form of the outbox."""
    # As text the message needs no escaped names and keeps integers above 64 bits.
    return [{"id": each.id, "content": json.dumps(each.document, ensure_ascii=False)} for each in outbox]


def messages(document: JsonMapping) -> list[Outgoing]:
    """Return the messages that wait in a document."""
    return [Outgoing(each["id"], json.loads(each["content"])) for each in document.get("outbox", [])]


def posting(outbox: Sequence[Outgoing]) -> dict[str, JsonObject]:
    """Return the update operators that add messages to the outbox; the caller adds to ``$set``."""
    if not outbox:
        return {"$set": {}}
    return {"$set": {"pending": True}, "$push": {"outbox": {"$each": entries(outbox)}}}
