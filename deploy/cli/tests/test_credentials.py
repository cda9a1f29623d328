"""The login at the gateway: Basic, tokens, Keystone by clouds.yaml; secrets stay where they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from callers.command_line import Ran, kubevnfm, run_here
from callers.users import PASSWORD, users_file
from clouds.openstack_stand import standing
from kubevnfm_lab.openstack.settings import CloudSettings
from worlds.lcm_world import lcm_world

CLOUDS = """
clouds:
  lab: {auth: {auth_url: URL, username: nfv, password: nfv, project_name: nfv, user_domain_name: Default, project_domain_name: Default}}
  wrong: {auth: {auth_url: URL, username: nfv, password: s3cret, project_name: nfv}}
  empty: {}
"""


async def ran(folder: Path, url: str, context: str, **environment: str) -> Ran:
    """Run a command with a context of a configuration file for the gateway."""
    path = folder / "kubevnfm" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'current = "here"\n[contexts.here]\nurl = "{url}"\n{context}\n')
    given = {"XDG_CONFIG_HOME": str(folder), "HOME": os.devnull, "KUBEVNFM_URL": "", **environment}
    return await kubevnfm("", "get", "vnf", environment=given)


async def test_each_way_to_authenticate_and_the_refusal_of_the_wrong(tmp_path: Path) -> None:
    secret = tmp_path / "kubevnfm" / "ada.password"
    secret.parent.mkdir()
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o600)
    async with (
        standing(CloudSettings()) as stand,
        lcm_world(
            tmp_path,
            auth_modes="basic,keystone",
            auth_users_file=users_file(tmp_path, ada=["reader"], bob=[]),
            auth_keystone_url=stand.auth_url,
            auth_keystone_username="nfv",
            auth_keystone_password="nfv",
            auth_keystone_project="nfv",
            auth_keystone_projects="*",
            auth_roles="member=reader",
        ) as world,
    ):
        clouds = tmp_path / "kubevnfm" / "clouds.yaml"
        clouds.write_text(CLOUDS.replace("URL", stand.auth_url))
        for context, environment, code, said in [
            ('user = "ada"\npassword_file = "ada.password"', {}, 0, "nothing found"),
            ('user = "ada"\npassword_env = "WORD"', {"WORD": PASSWORD}, 0, "nothing found"),
            ('user = "ada"\npassword_env = "WORD"', {"WORD": "s3cret"}, 4, "401: "),
            ('user = "ada"\npassword_env = "WORD"', {}, 2, "variable WORD is not set"),
            ('user = "bob"\npassword_file = "ada.password"', {}, 4, "403: "),
            ("", {}, 4, "401: "),
            ("", {"KUBEVNFM_CLIENT_USER": "ada", "KUBEVNFM_CLIENT_PASSWORD": PASSWORD}, 0, "nothing found"),
            ('token_env = "WORD"', {"WORD": "s3cret"}, 4, "401: "),
            ('token_env = "WORD"', {"WORD": "s3cret\r\nX: y"}, 2, "no header can have"),
            ('cloud = "lab"\nclouds_file = "clouds.yaml"', {}, 0, "nothing found"),
            ('cloud = "lab"', {"OS_CLIENT_CONFIG_FILE": str(clouds)}, 0, "nothing found"),
            ('cloud = "wrong"\nclouds_file = "clouds.yaml"', {}, 4, "Keystone of cloud wrong gives no token: 401"),
            ('cloud = "empty"\nclouds_file = "clouds.yaml"', {}, 2, "cloud empty with auth expected"),
        ]:
            ended = await ran(tmp_path, world.url, context, **environment)
            assert (ended.code, said in ended.err) == (code, True), (context, ended)
            assert "s3cret" not in ended.err + ended.out
            assert PASSWORD not in ended.err + ended.out


@pytest.mark.parametrize(
    "url", ["ftp://host", "http://", "http://user:s3cret@host", "http://host:port", "https://h/?a=b"]
)
def test_a_url_that_is_none_is_wrong_usage_and_shows_no_login(url: str) -> None:
    ended = run_here("get", "vnf", "--url", url)
    assert (ended.code, ended.out) == (2, "")
    assert "s3cret" not in ended.err
