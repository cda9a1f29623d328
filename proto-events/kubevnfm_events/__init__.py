"""The contract: every command and event of kubevnfm, as pydantic models carried by CloudEvents."""

from kubevnfm_events import capi, credentials, infra, kuryr, lcm, mgmt, vim
from kubevnfm_events.base import (
    MESSAGES,
    Command,
    Envelope,
    Event,
    Facts,
    InvalidMessage,
    Message,
    decode,
    from_document,
)
from kubevnfm_events.common import (
    CancelStep,
    CapiKind,
    CapiProvider,
    CapiProviders,
    ClusterAccess,
    CommandFailed,
    PackageRef,
    ServiceFacts,
    VimConnection,
)

__all__ = [
    "MESSAGES",
    "CancelStep",
    "CapiKind",
    "CapiProvider",
    "CapiProviders",
    "ClusterAccess",
    "Command",
    "CommandFailed",
    "Envelope",
    "Event",
    "Facts",
    "InvalidMessage",
    "Message",
    "PackageRef",
    "ServiceFacts",
    "VimConnection",
    "capi",
    "credentials",
    "decode",
    "from_document",
    "infra",
    "kuryr",
    "lcm",
    "mgmt",
    "vim",
]
