"""The audit log of the gateway."""

from __future__ import annotations

from pathlib import Path

from callers.callers import LIST, PACKAGES, V2, get
from callers.users import HASHED, PASSWORD, basic, users_file
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from worlds.lcm_world import LINKED, Answer, lcm_world


async def test_changing_calls_are_written_down_with_who_and_what_and_no_secret(tmp_path: Path) -> None:
    users = users_file(tmp_path, o=["operator"], a=["admin"], r=["reader"])
    async with lcm_world(tmp_path, auth_modes="basic", auth_users_file=users) as world:
        operator, admin = {**V2, **basic("o")}, basic("a")
        with capture_logs([merge_contextvars]) as logs:
            named = {**admin, "X-Request-ID": "audit/1"}
            package = (await world.call("POST", PACKAGES, {}, headers=named)).must(201).json["id"]
            await world.call(
                "PUT", f"{PACKAGES}/{package}/package_content", data=world.zipped("vm"),
                headers={**admin, "Content-Type": "application/zip"},
            )  # fmt: skip
            await world.bus.quiet()
            request = {"vnfdId": "1a27cf0a-6c8f-4f43-93d1-2e4a62b1f9a3"}

            async def made() -> Answer:
                return await world.call("POST", LIST, request, headers=operator)

            while (created := await made()).status == 422:  # not onboarded yet
                await world.bus.quiet()
            instance = created.must(201).json["id"]
            task = await world.call(
                "POST", f"{LIST}/{instance}/instantiate",
                {**LINKED, "additionalParams": {"password": "s3cret"}}, headers=operator,
            )  # fmt: skip
            (await world.call("DELETE", f"{LIST}/{instance}", headers={**V2, **basic("r")})).problem(403)
            (await world.call("DELETE", f"{LIST}/{instance}", headers=V2)).problem(401)
            await get(world, operator)
            await world.bus.quiet()
        audit = [line for line in logs if line["event"] == "audit"]
        assert all(line["method"] != "GET" for line in audit)
        assert [line["status"] for line in audit][-2:] == [403, 401]
        assert audit[0] == {
            "event": "audit", "log_level": "info", "subject": "a", "mode": "basic", "roles": ["admin"], "project": None,
            "address": "127.0.0.1", "method": "POST", "path": PACKAGES, "status": 201, "occurrence_id": None,
            "request_id": "audit/1",
        }  # fmt: skip
        started = next(line for line in audit if line["path"].endswith("/instantiate"))
        assert (started["subject"], started["status"]) == ("o", task.must(202).status)
        assert started["occurrence_id"] == task.headers["Location"].rpartition("/")[2]
        assert (audit[-2]["subject"], audit[-1]["subject"]) == ("r", None)
        for secret in ("s3cret", PASSWORD, HASHED, basic("o")["Authorization"].split()[1]):
            assert secret not in repr(logs)
