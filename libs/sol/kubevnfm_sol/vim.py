"""VimConnectionInfo (SOL003 V3.7.1 clause 4.4.1.6) and the names of VIM types."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.json_types import JsonObject
from kubevnfm_secrets import SecretParams
from pydantic import Field

from kubevnfm_sol.base import SolRequest

OPENSTACK: Final = "ETSINFV.OPENSTACK_KEYSTONE.V_3"
KUBERNETES: Final = "ETSINFV.KUBERNETES.V_1"
CREATED_BY: Final = "created_by"
"""In ``extra`` of an entry: the VNF instance that is this cluster."""

_LONG_NAME: Final = {
    "openstack": OPENSTACK,
    # Keystone dropped its v2 API in the Queens release: packages that still name it are served by v3.
    "etsinfv.openstack_keystone.v_2": OPENSTACK,
    OPENSTACK.lower(): OPENSTACK,
    "kubernetes": KUBERNETES,
    KUBERNETES.lower(): KUBERNETES,
    # The same cluster: whether a CNF on it is a chart is a matter of its request.
    "etsinfv.helm.v_3": KUBERNETES,
}
_SHORT_NAME: Final = {OPENSTACK: "openstack", KUBERNETES: "kubernetes"}


def long_vim_type(vim_type: str) -> str:
    """Return the ETSINFV name for either spelling; other names are passed through."""
    # In any case: the requests of Tacker's guides have ETSINFV.OPENSTACK_KEYSTONE.v_2.
    return _LONG_NAME.get(vim_type.lower(), vim_type)


def short_vim_type(vim_type: str) -> str:
    """Return the name that v1 answers print (``openstack``, ``kubernetes``)."""
    return _SHORT_NAME.get(long_vim_type(vim_type), vim_type)


class VimConnectionInfo(SolRequest):
    """How to reach a VIM: by reference, or with its access data."""

    vim_id: str | None = None
    vim_type: str
    interface_info: JsonObject = Field(default_factory=dict)
    access_info: SecretParams = Field(default_factory=dict)
    extra: SecretParams = Field(default_factory=dict)
