"""Lists: filter, selectors, paging (api.md chapter 5), over enough instances for more than two pages."""

from __future__ import annotations

import secrets
from typing import Any
from urllib.parse import quote

from callers.user import User
from servers.installations import PAGE_SIZE


async def _walk(user: User, query: str) -> list[list[dict[str, Any]]]:
    """Return every page of a list, following the Link headers."""
    answer = (await user.lcm("GET", f"/vnf_instances?{query}")).must(200)
    pages = [answer.json]
    while link := answer.headers.get("Link"):
        url, _, relation = link.partition(">; ")
        assert relation == 'rel="next"'
        path = url.removeprefix("<").removeprefix(f"{user.installation.url}/vnflcm/{user.version}")
        answer = (await user.lcm("GET", path)).must(200)
        pages.append(answer.json)
    return pages


async def test_paging_shows_each_instance_once_and_keeps_filter_and_selectors(user: User) -> None:
    """API-093, API-095, API-096."""
    prefix = f"page-{secrets.token_hex(4)}"
    vnfd_id = await user.sample("vm")
    made = [await user.create(vnfd_id, vnfInstanceName=f"{prefix}-{i:02}") for i in range(2 * PAGE_SIZE + 2)]
    pages = await _walk(user, f"filter=(cont,vnfInstanceName,{prefix})&fields=vnfInstanceName")
    assert [len(page) for page in pages] == [PAGE_SIZE, PAGE_SIZE, 2]
    assert [one["id"] for page in pages for one in page] == made
    assert all("instantiationState" in one and "vnfInstanceDescription" not in one for page in pages for one in page)
    (await user.lcm("GET", "/vnf_instances?nextpage_opaque_marker=damaged")).must(400)
    for instance_id in made:
        await user.delete(instance_id)


async def test_filters_select(user: User) -> None:
    """API-090, API-092, API-094."""
    prefix = f"filter-{secrets.token_hex(4)}"
    vnfd_id = await user.sample("vm")
    names = [f"{prefix}-a", f"{prefix}-b,'c'"]
    made = [await user.create(vnfd_id, vnfInstanceName=name) for name in names]

    async def found(expression: str) -> set[str]:
        pages = await _walk(user, f"filter={quote(f'(cont,vnfInstanceName,{prefix});{expression}')}")
        return {one["id"] for page in pages for one in page}

    assert await found(f"(eq,vnfInstanceName,{names[0]})") == {made[0]}
    assert await found(f"(neq,vnfInstanceName,{names[0]})") == {made[1]}
    assert await found(f"(eq,vnfInstanceName,'{prefix}-b,''c''')") == {made[1]}
    assert await found(f"(in,id,{made[0]},{made[1]})") == set(made)
    assert await found("(eq,instantiationState,INSTANTIATED)") == set()
    for wrong in ("(eq,vnfInstanceName)", "(like,id,x)", "(eq,noSuchAttribute,x)", "(eq,id,x", "eq,id,x"):
        answer = (await user.lcm("GET", f"/vnf_instances?filter={quote(wrong)}")).must(400)
        assert answer.detail
    listed = (await user.lcm("GET", "/vnf_lcm_op_occs?exclude-fields=operationParams")).must(200).json
    assert all("operationParams" not in one for one in listed)
    for instance_id in made:
        await user.delete(instance_id)
