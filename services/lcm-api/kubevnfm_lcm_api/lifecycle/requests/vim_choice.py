"""Selects the entry of vimConnectionInfo for the resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubevnfm_clients.ports import Vims
from kubevnfm_kit.errors import InvalidInput, NotFound, Unprocessable
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK, VimConnectionInfo, long_vim_type

from kubevnfm_lcm_api.lifecycle.requests.cnf import DEF_FILES


class NoVim(Unprocessable):
    """The request names no VIM and there is no default one."""

    code = "no-vim"


async def choose_vim(
    vims: Vims, connections: Mapping[str, VimConnectionInfo], parameters: Mapping[str, Any]
) -> tuple[str, dict[str, VimConnectionInfo]]:
    """Return the key of the entry for the resources, chosen by type and never by position, and all entries.

    Raises: NoVim, Unprocessable, InvalidInput naming the entry. Source: sequences.md 4.3.
    """
    typed = {
        key: value.model_copy(update={"vim_type": long_vim_type(value.vim_type)}) for key, value in connections.items()
    }
    for key, value in typed.items():
        if value.vim_type not in {OPENSTACK, KUBERNETES}:
            raise Unprocessable(f"vimConnectionInfo/{key}/vimType", f"{OPENSTACK} or {KUBERNETES} expected")
    # Manifests are the only sign of a CNF in a request; its VNFD looks like any other.
    wanted = KUBERNETES if DEF_FILES in parameters else OPENSTACK
    found = next((key for key, value in typed.items() if value.vim_type == wanted), next(iter(typed), None))
    if found is None:
        default = await vims.default()
        if default is None:
            raise NoVim("vimConnectionInfo", "no entry was given and no default VIM is registered")
        found = str(default["id"])
        typed[found] = VimConnectionInfo(vim_id=found, vim_type=long_vim_type(str(default["type"])))
    key, chosen = found, typed[found]
    if wanted == KUBERNETES and chosen.vim_type != KUBERNETES:
        raise Unprocessable("vimConnectionInfo", f"{DEF_FILES} needs a VIM of type {KUBERNETES}")
    # An entry with accessInfo needs no registered VIM.
    if not chosen.access_info:
        if chosen.vim_id is None:
            raise Unprocessable(f"vimConnectionInfo/{key}", "vimId or accessInfo expected")
        try:
            registered = await vims.get(chosen.vim_id)
        except NotFound as error:
            raise Unprocessable(f"vimConnectionInfo/{key}/vimId", f"no VIM {chosen.vim_id} is registered") from error
        if long_vim_type(str(registered["type"])) != chosen.vim_type:
            raise Unprocessable(
                f"vimConnectionInfo/{key}/vimType",
                f"VIM {chosen.vim_id} is registered with type {registered['type']}; {chosen.vim_type} was given",
            )
    elif not chosen.interface_info.get("endpoint"):
        raise InvalidInput(f"vimConnectionInfo/{key}/interfaceInfo/endpoint", "required together with accessInfo")
    return key, typed
