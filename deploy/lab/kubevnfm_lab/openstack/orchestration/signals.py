"""The signed addresses at which a scaling policy is signalled without a token, like those of Heat's CFN service."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from kubevnfm_lab.openstack.orchestration.stack import Resource


def arn(resource: Resource) -> str:
    """Return the name of a resource across the cloud."""
    stack = resource.stack
    return f"arn:openstack:heat::{stack.project_id}:stacks/{stack.path}/resources/{resource.name}"


def signature(key: bytes, name: str) -> str:
    """Return the signature of the address of that name."""
    return hmac.new(key, name.encode(), hashlib.sha256).hexdigest()


def signal_url(base_url: str, key: bytes, resource: Resource) -> str:
    """Return the address."""
    name = arn(resource)
    return (
        f"{base_url}/cloudformation/v1/signal/{quote(name, safe='/')}?SignatureMethod=HmacSHA256&SignatureVersion=2"
        f"&AWSAccessKeyId={resource.physical_id}&Signature={signature(key, name)}"
    )
