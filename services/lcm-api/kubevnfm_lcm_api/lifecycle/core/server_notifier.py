"""The operator's notifier of faults of servers, as a VNF instance names it.

``ServerNotifierUri`` and ``ServerNotifierFaultID`` are in the additionalParams of its instantiation, or in its metadata, where a
management driver of Tacker writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from kubevnfm_events import Envelope, Event
from kubevnfm_events.lcm import ServersChanged
from kubevnfm_kit.errors import InvalidInput
from kubevnfm_kit.json_types import JsonMapping

from kubevnfm_lcm_api.event_chain import SOURCE
from kubevnfm_lcm_api.lifecycle.core.instance import InstanceRecord

URI: Final = "ServerNotifierUri"
FAULT_IDS: Final = "ServerNotifierFaultID"
_LONGEST_URI: Final = 2048
_MOST_FAULTS: Final = 32
FAULT_LENGTH: Final = 4
"""As in the notifications of faults: another id could be registered, and never be reported."""
_EXPECTED: Final = {
    URI: "the root of an http or https address expected, without user, query and fragment",
    FAULT_IDS: f"1 to {_MOST_FAULTS} ids of faults expected, as texts of {FAULT_LENGTH} characters",
}


def notifier_uri(record: InstanceRecord) -> str | None:
    """Return the root of the notifier; None if the instance names none that can be called."""
    found = next((given[URI] for given in _places(record) if URI in given), None)
    return found if isinstance(found, str) and is_root(found) else None


def server_events(*written: InstanceRecord) -> list[Envelope[Event]]:
    """Return the event of an operation's end, for the instance as it was before and after: none if it names no notifier."""
    if not any(URI in given for each in written for given in _places(each)):
        return []
    instance_id = written[0].vnf.id
    return [Envelope(data=ServersChanged(vnf_instance_id=instance_id), source=SOURCE, subject=instance_id)]


def fault_ids(record: InstanceRecord) -> Sequence[str]:
    """Return the ids of the faults that are meant."""
    for given in _places(record):
        if found := _fault_ids(given.get(FAULT_IDS)):
            return found
    return ()


def check_notifier(parameters: JsonMapping) -> None:
    """Raise InvalidInput for additionalParams by which no server can be registered."""
    check_values(parameters, "additionalParams")
    if URI in parameters and FAULT_IDS not in parameters:
        raise InvalidInput(f"additionalParams/{FAULT_IDS}", _EXPECTED[FAULT_IDS])


def check_values(given: JsonMapping, place: str) -> None:
    """Raise InvalidInput for a value that cannot be used; null stands for none in a patch of metadata."""
    uri, ids = given.get(URI), given.get(FAULT_IDS)
    if uri is not None and not (isinstance(uri, str) and is_root(uri)):
        raise InvalidInput(f"{place}/{URI}", _EXPECTED[URI])
    if ids is not None and not _fault_ids(ids):
        raise InvalidInput(f"{place}/{FAULT_IDS}", _EXPECTED[FAULT_IDS])


def is_root(uri: str) -> bool:
    """Return whether paths of the notifier can be appended to it."""
    try:
        parts = urlsplit(uri)
        return (
            len(uri) <= _LONGEST_URI
            and uri.isascii()
            and uri.isprintable()
            and parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.username or parts.password or parts.query or parts.fragment or " " in uri)
        )
    except ValueError:
        return False


def _places(record: InstanceRecord) -> Sequence[JsonMapping]:
    info = record.vnf.instantiated_vnf_info
    return (info.metadata or {} if info else {}, record.vnf.metadata or {}, record.internals.parameters)


def _fault_ids(found: object) -> Sequence[str]:
    """Return the ids; none if one of them, or their number, cannot be used: a script may write metadata, too."""
    if not isinstance(found, list | tuple):
        found = (found,)
    is_whole = len(found) <= _MOST_FAULTS and all(isinstance(each, str) and len(each) == FAULT_LENGTH for each in found)
    return tuple(found) if is_whole else ()
