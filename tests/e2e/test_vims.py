"""VIMs in the form of existing clients (api.md chapter 8), on both spellings of each path."""

from __future__ import annotations

import secrets
from typing import Any

import pytest
from callers.user import Answer, User, sample_body
from clouds.lab_process import LabControl
from servers.wirings import in_six

UNKNOWN = "00000000-0000-4000-8000-000000000000"
BOTH = pytest.mark.parametrize("ending", ["", ".json"])


def _body(user: User, **changes: Any) -> dict[str, Any]:
    return {
        "vim": {**user.installation.lab.vim(), "name": f"vim-{secrets.token_hex(4)}", "is_default": False, **changes}
    }


def _refused(answer: Answer, status: int) -> str:
    """Return the message of a TackerError."""
    answer.must(status)
    assert answer.headers["Content-Type"].startswith("application/json")
    error = answer.json["TackerError"]
    assert error["type"]
    assert error["message"]
    return str(error["message"])


@BOTH
async def test_a_vim_is_made_listed_shown_changed_and_deleted(user: User, ending: str) -> None:
    """API-005, API-130, API-134, API-136."""
    body = _body(user)
    made = (await user.call("POST", f"/v1.0/vims{ending}", body)).must(201)
    vim = made.json["vim"]
    one = f"/v1.0/vims/{vim['id']}{ending}"
    assert "Version" not in made.headers
    assert (vim["status"], vim["type"], vim["name"]) == ("ACTIVE", "openstack", body["vim"]["name"])
    assert vim["placement_attr"]["regions"]
    assert vim["auth_cred"]["password"] == "***"
    assert vim["auth_cred"]["cert_verify"] == "False"
    assert user.installation.lab.vim_password not in made.text

    listed = (await user.call("GET", f"/v1.0/vims{ending}")).must(200).json["vims"]
    assert vim["id"] in {each["id"] for each in listed}
    shown = (await user.call("GET", one)).must(200)
    assert shown.json == {"vim": vim}
    seen = {"If-Match": shown.headers["ETag"]}
    known = await user.call("GET", one, headers={"If-None-Match": shown.headers["ETag"]})
    assert known.status == 304
    changed = (await user.call("PUT", one, {"vim": {"description": "changed"}}, headers=seen)).must(200).json["vim"]
    assert changed == {**vim, "description": "changed", "updated_at": changed["updated_at"]}
    # Another caller has read it before this change.
    for method, content in (("PUT", {"vim": {"description": "lost"}}), ("DELETE", None)):
        assert "changed" in _refused(await user.call(method, one, content, headers=seen), 412)
    present = (await user.call("GET", one)).must(200)
    assert present.json == {"vim": changed}
    (await user.call("DELETE", one, headers={"If-Match": present.headers["ETag"]})).must(204)
    assert vim["id"] in _refused(await user.call("GET", one), 404)


@BOTH
async def test_clients_find_a_vim_by_name_or_id(user: User, ending: str) -> None:
    """API-130: the queries of python-tackerclient before each show, set and delete."""
    vim = (await user.vims())["lab"]
    for query in ("name=lab&fields=id", f"id={vim['id']}&fields=id"):
        found = (await user.call("GET", f"/v1.0/vims{ending}?{query}")).must(200).json
        assert found == {"vims": [{"id": vim["id"]}]}
    none = (await user.call("GET", f"/v1.0/vims{ending}?name=unknown&fields=id")).must(200).json
    assert none == {"vims": []}
    pair = (await user.call("GET", f"/v1.0/vims/{vim['id']}{ending}?fields=id&fields=name")).must(200).json
    assert pair == {"vim": {"id": vim["id"], "name": "lab"}}
    for path in (f"/v1.0/vims{ending}?colour=blue", f"/v1.0/vims/{vim['id']}{ending}?colour=blue"):
        assert "colour" in _refused(await user.call("GET", path), 400)


async def test_refused_registrations_have_the_error_form_of_the_client(user: User) -> None:
    """API-011, API-130, API-132."""
    wrong = _body(user)
    wrong["vim"]["auth_cred"] = {**wrong["vim"]["auth_cred"], "password": "not-the-password"}
    message = _refused(await user.call("POST", "/v1.0/vims", wrong), 400)
    assert "unauthorized for VIM" in message
    assert "not-the-password" not in message
    perhaps = _body(user)
    perhaps["vim"]["auth_cred"] = {**perhaps["vim"]["auth_cred"], "cert_verify": "perhaps"}
    assert "cert_verify" in _refused(await user.call("POST", "/v1.0/vims", perhaps), 400)
    assert "default VIM is already" in _refused(
        await user.call("POST", "/v1.0/vims", _body(user, is_default=True)), 409
    )
    assert "named lab" in _refused(await user.call("POST", "/v1.0/vims", _body(user, name="lab")), 409)
    _refused(await user.call("POST", "/v1.0/vims", {"name": "no vim around it"}), 400)
    _refused(await user.call("PATCH", "/v1.0/vims", {}), 405)
    for method in ("GET", "DELETE"):
        _refused(await user.call(method, f"/v1.0/vims/{UNKNOWN}"), 404)
    _refused(await user.call("PUT", f"/v1.0/vims/{UNKNOWN}", {"vim": {"name": "x"}}), 404)
    _refused(await user.call("GET", "/v1.0/vims", headers={"Accept": "text/html"}), 406)


@pytest.mark.parametrize("form", ["{}%2fconnection", "{}%2Fconnection.json", "x%2f..%2f{}%2fconnection", "{}%3fx%23y"])
async def test_no_form_of_an_id_shows_what_is_for_other_services(user: User, form: str) -> None:
    """API-132: the registry serves sealed access data beside the record."""
    vim = (await user.vims())["lab"]
    for method in ("GET", "DELETE"):
        refused = await user.call(method, f"/v1.0/vims/{form.format(vim['id'])}")
        _refused(refused, 404)
        assert "sealed" not in refused.text


@in_six
async def test_a_vim_in_use_changes_its_password_only_and_is_not_deleted(user: User, lab: LabControl) -> None:
    """API-132."""
    instance_id = await user.create(await user.sample("vm"))
    await user.do(instance_id, "instantiate", sample_body("vm", "instantiate"))
    one = f"/v1.0/vims/{(await user.vims())['lab']['id']}"
    assert instance_id in _refused(await user.call("DELETE", one), 409)
    project = {"vim": {"vim_project": {"name": "another", "project_domain_name": "Default"}}}
    assert instance_id in _refused(await user.call("PUT", one, project), 409)
    assert "auth_url" in _refused(await user.call("PUT", one, {"vim": {"auth_url": "http://127.0.0.1:9/v3"}}), 400)
    same = {"vim": {"auth_cred": {"password": user.installation.lab.vim_password}}}
    (await user.call("PUT", one, same)).must(200)
    await user.terminate(instance_id)
