"""The entries of vimConnectionInfo: which one the resources are on, and what each of them means (api.md 3.2)."""

from __future__ import annotations

from collections.abc import Mapping

from kubevnfm_clients.ports import Vims
from kubevnfm_events import ApiVersion
from kubevnfm_kit.errors import InvalidInput, NotFound, Unprocessable
from kubevnfm_sol.access import check_login, check_understood, region_of
from kubevnfm_sol.vim import KUBERNETES, OPENSTACK, VimConnectionInfo, long_vim_type


class NoVim(Unprocessable, code="no-vim"):
    """The request names no VIM and there is no default one."""


class VimEntries:
    """Reads the entries of requests. Every method raises InvalidInput or Unprocessable naming the entry's attribute."""

    def __init__(self, vims: Vims) -> None:
        self._vims = vims

    async def choose(
        self, connections: Mapping[str, VimConnectionInfo], wanted: str, sign: str | None, version: ApiVersion
    ) -> tuple[str, dict[str, VimConnectionInfo]]:
        """Return the key of the entry for the resources, chosen by type and never by position, and all entries.

        ``wanted``: the type of VIM; ``sign``: the attribute of the request that needs it, None: another type is accepted.
        Raises also NoVim. Source: sequences.md 4.3.
        """
        typed = checked(connections)
        key = next((key for key, value in typed.items() if value.vim_type == wanted), next(iter(typed), None))
        if key is None:
            default = await self._vims.default()
            if default is None:
                raise NoVim("vimConnectionInfo", "no entry was given and no default VIM is registered")
            key = str(default["id"])
            typed[key] = VimConnectionInfo(vim_id=key, vim_type=long_vim_type(str(default["type"])))
        if sign is not None and typed[key].vim_type != wanted:
            raise Unprocessable("vimConnectionInfo", f"{sign} needs a VIM of type {wanted}")
        typed[key] = await self._usable(key, typed[key], version)
        return key, typed

    async def changed(
        self,
        connections: Mapping[str, VimConnectionInfo],
        vim_key: str,
        present: VimConnectionInfo,
        version: ApiVersion,
    ) -> dict[str, VimConnectionInfo]:
        """Return the entries of a request about an instantiated VNF, whose resources are on ``present``.

        An entry of v1 that names no VIM means the VIM of the VNF.
        """
        typed = checked(connections)
        for key, entry in typed.items():
            if key == vim_key or _names_no_vim(entry, version):
                typed[key] = await self._usable(key, entry, version, otherwise=present)
        return typed

    async def check_openstack(self, vim_id: str, place: str) -> None:
        """Check that the id at a place of the request is that of a registered OpenStack."""
        try:
            registered = await self._vims.get(vim_id)
        except NotFound as error:
            raise Unprocessable(place, f"no VIM {vim_id} is registered") from error
        if long_vim_type(str(registered["type"])) != OPENSTACK:
            raise Unprocessable(
                place, f"an OpenStack expected; VIM {vim_id} is registered with type {registered['type']}"
            )

    async def _usable(
        self, key: str, entry: VimConnectionInfo, version: ApiVersion, *, otherwise: VimConnectionInfo | None = None
    ) -> VimConnectionInfo:
        """Return the entry with a registered VIM, or with access data that suffice for a log-in.

        ``otherwise``: the VIM that an entry of v1 means if it names none; by default the default VIM.
        """
        place = f"vimConnectionInfo/{key}"
        if not _is_own_login(entry, version):
            if entry.vim_id is not None:
                await self._check_registered(entry, place)
                return _reference(entry, entry.vim_id)
            found = await self._unnamed(entry, place, otherwise) if version == "v1" else None
            if found is not None:
                return found
            if not entry.access_info:
                raise Unprocessable(place, "vimId or accessInfo expected")
        check_login(entry, place)
        return entry

    async def _unnamed(
        self, entry: VimConnectionInfo, place: str, otherwise: VimConnectionInfo | None
    ) -> VimConnectionInfo | None:
        """Return the VIM for an entry of v1 without ``vimId``; None if there is no default VIM."""
        if otherwise is not None:
            return otherwise
        default = await self._vims.default()
        if default is None:
            return None
        found = _reference(entry, str(default["id"]))
        await self._check_registered(found, place)
        return found

    async def _check_registered(self, entry: VimConnectionInfo, place: str) -> None:
        assert entry.vim_id is not None
        try:
            registered = await self._vims.get(entry.vim_id)
        except NotFound as error:
            raise Unprocessable(f"{place}/vimId", f"no VIM {entry.vim_id} is registered") from error
        if long_vim_type(str(registered["type"])) != entry.vim_type:
            raise Unprocessable(
                f"{place}/vimType",
                f"VIM {entry.vim_id} is registered with type {registered['type']}; {entry.vim_type} was given",
            )
        region = region_of(entry) if entry.vim_type == OPENSTACK else None
        regions = (registered.get("placement_attr") or {}).get("regions") or ()
        if region is not None and region not in regions:
            raise Unprocessable(
                f"{place}/accessInfo/region",
                f"VIM {entry.vim_id} has no region {region}; it has {', '.join(regions) or 'none'}",
            )


def checked(connections: Mapping[str, VimConnectionInfo]) -> dict[str, VimConnectionInfo]:
    """Return the entries with their types in SOL003's spelling. Raises for a type or attribute that is not understood."""
    typed = {
        key: value.model_copy(update={"vim_type": long_vim_type(value.vim_type)}) for key, value in connections.items()
    }
    for key, value in typed.items():
        if value.vim_type not in {OPENSTACK, KUBERNETES}:
            raise Unprocessable(f"vimConnectionInfo/{key}/vimType", f"{OPENSTACK} or {KUBERNETES} expected")
        check_understood(value, f"vimConnectionInfo/{key}")
    return typed


def _is_own_login(entry: VimConnectionInfo, version: ApiVersion) -> bool:
    """Return whether the entry's own access data are to be used, and not those of a registered VIM.

    Tacker's v1 never reads the access data of a request: its users send a user and a ``tenant`` that need not exist,
    and mean a registered VIM. A v1 entry is a log-in only if it is complete, under SOL003's names.
    """
    if not set(entry.access_info) - {"region"}:
        return False
    if version == "v2":
        return True
    try:
        check_login(entry, "")
    except InvalidInput:
        return False
    return "tenant" not in entry.access_info


def _names_no_vim(entry: VimConnectionInfo, version: ApiVersion) -> bool:
    return version == "v1" and entry.vim_id is None and not _is_own_login(entry, version)


def _reference(entry: VimConnectionInfo, vim_id: str) -> VimConnectionInfo:
    """Return the entry as a reference to a registered VIM, in the region that it names."""
    region = region_of(entry) if entry.vim_type == OPENSTACK else None
    access = {} if region is None else {"region": region}
    return entry.model_copy(update={"vim_id": vim_id, "interface_info": {}, "access_info": access})
