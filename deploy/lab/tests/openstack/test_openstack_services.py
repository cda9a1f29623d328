"""Keystone, Nova, Neutron, Cinder and Glance by their own APIs."""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

import pytest
from clouds.openstack_stand import Json, Stand
from kubevnfm_lab.openstack.settings import CloudSettings, Credentials

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleWtleWtleWtleWtleWtleWtleWtleWtleWtleWtl someone"


def password_auth(password: str, project: str | None = "nfv") -> Json:
    identity = {
        "methods": ["password"],
        "password": {"user": {"name": "nfv", "domain": {"id": "default"}, "password": password}},
    }
    scope = {"scope": {"project": {"name": project, "domain": {"id": "default"}}}} if project else {}
    return {"auth": {"identity": identity, **scope}}


class TestKeystone:
    async def test_a_wrong_password_is_refused_in_keystones_form(self, stand: Stand) -> None:
        answer = await stand.call("POST", "/identity/v3/auth/tokens", password_auth("wrong"))
        assert answer.status == 401
        assert answer.body["error"] == {
            "code": 401,
            "message": "The request you have made requires authentication.",
            "title": "Unauthorized",
        }

    async def test_a_project_without_a_role_is_refused(self, stand: Stand) -> None:
        answer = await stand.call("POST", "/identity/v3/auth/tokens", password_auth("nfv", project="other"))
        assert answer.status == 401

    @pytest.mark.parametrize(
        "path",
        ["{heat}/stacks", "/compute/v2.1/servers", "/network/v2.0/ports", "/image/v2/images", "{cinder}/volumes"],
    )
    async def test_no_service_takes_an_unknown_or_an_ended_token(self, stand: Stand, path: str) -> None:
        path = path.format(heat=stand.heat, cinder=stand.cinder)
        assert (await stand.call("GET", path)).status == 200
        stand.cloud.identity.revoke_all()
        answer = await stand.call("GET", path)
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Keystone uri=")

    async def test_a_token_ends_when_its_time_is_up(self, stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
        later = time.time() + 3601
        monkeypatch.setattr(time, "time", lambda: later)
        assert (await stand.call("GET", "/compute/v2.1/servers")).status == 401

    async def test_an_application_credential_is_a_second_way_in(self, stand: Stand) -> None:
        user_id = (await stand.call("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": stand.token})).body[
            "token"
        ]["user"]["id"]
        path = f"/identity/v3/users/{user_id}/application_credentials"
        made = (await stand.call("POST", path, {"application_credential": {"name": "robot"}})).body
        credential = made["application_credential"]
        shown = (await stand.get(f"{path}/{credential['id']}"))["application_credential"]
        assert "secret" not in shown
        auth = {"id": credential["id"], "secret": credential["secret"]}
        body = {"auth": {"identity": {"methods": ["application_credential"], "application_credential": auth}}}
        answer = await stand.call("POST", "/identity/v3/auth/tokens", body)
        assert answer.status == 201
        assert answer.body["token"]["project"]["id"] == stand.project_id
        named = {"id": credential["id"], "name": "robot", "restricted": True}
        assert answer.body["token"]["application_credential"] == named
        wrong = {
            "auth": {
                "identity": {"methods": ["application_credential"], "application_credential": {**auth, "secret": "x"}}
            }
        }
        assert (await stand.call("POST", "/identity/v3/auth/tokens", wrong)).status == 401
        # As Keystone 22 (Zed) answers: names are unique, and a credential manages no other one.
        again = await stand.call("POST", path, {"application_credential": {"name": "robot"}})
        assert (again.status, again.body["error"]["title"]) == (409, "Conflict")
        assert (await stand.call("POST", path, {"application_credential": {"name": ""}})).status == 400
        assert [one["id"] for one in (await stand.get(f"{path}?name=robot"))["application_credentials"]] == [auth["id"]]
        assert (await stand.get(f"{path}?name=other"))["application_credentials"] == []
        assert (await stand.call("GET", "/identity/v3/users/ffff/application_credentials")).status == 403
        token = {"X-Auth-Token": answer.headers["X-Subject-Token"]}
        other = {"application_credential": {"name": "other"}}
        assert (await stand.call("POST", path, other, headers=token)).status == 403
        assert (await stand.call("DELETE", f"{path}/{auth['id']}", headers=token)).status == 403
        for status in (204, 404):
            assert (await stand.call("DELETE", f"{path}/{auth['id']}")).status == status
        gone = await stand.call("POST", "/identity/v3/auth/tokens", body)
        assert (gone.status, gone.body["error"]["title"]) == (404, "Not Found")

    async def test_a_bad_request_names_what_was_expected(self, stand: Stand) -> None:
        answer = await stand.call("POST", "/identity/v3/auth/tokens", {"auth": {}})
        assert answer.status == 400
        assert "methods" in answer.body["error"]["message"]

    async def test_secrets_are_in_no_repr(self, stand: Stand) -> None:
        assert "s3cret" not in repr(Credentials(password="s3cret"))
        (user,) = stand.cloud.identity.users.values()
        user.password = "s3cret"
        assert "s3cret" not in repr(user)


class TestTwoProjects:
    @pytest.fixture
    def settings(self) -> CloudSettings:
        return CloudSettings(credentials=(Credentials(), Credentials("other", "other", "other")))

    async def test_a_project_does_not_see_what_another_one_made(self, stand: Stand) -> None:
        await stand.call("POST", f"{stand.cinder}/volumes", {"volume": {"size": 1}})
        port = await stand.call("POST", "/network/v2.0/ports", {"port": {"network_id": await network(stand, "net0")}})
        mine = stand.project_id
        await stand.log_in("other", "other", "other")
        assert stand.project_id != mine
        assert (await stand.get(f"{stand.cinder}/volumes"))["volumes"] == []
        assert (await stand.get("/network/v2.0/ports"))["ports"] == []
        assert (await stand.call("GET", f"/network/v2.0/ports/{port.body['port']['id']}")).status == 404
        assert "net0" in {n["name"] for n in (await stand.get("/network/v2.0/networks"))["networks"]}


async def network(stand: Stand, name: str) -> str:
    (found,) = (await stand.get(f"/network/v2.0/networks?name={name}"))["networks"]
    return str(found["id"])


class TestNova:
    async def a_server(self, stand: Stand, **more: Any) -> Json:
        image = (await stand.get("/image/v2/images?name=ubuntu"))["images"][0]["id"]
        body = {
            "server": {
                "name": "Direct_1",
                "flavorRef": "1",
                "imageRef": image,
                "networks": [{"uuid": await network(stand, "net1")}],
                **more,
            }
        }
        answer = await stand.call("POST", "/compute/v2.1/servers", body)
        assert answer.status == 202, answer
        server_id = answer.body["server"]["id"]
        await stand.until(lambda: stand.cloud.nova.servers[server_id].status != "BUILD")
        shown: Json = (await stand.get(f"/compute/v2.1/servers/{server_id}"))["server"]
        return shown

    async def test_a_server_made_directly_boots_with_what_it_was_given(self, stand: Stand) -> None:
        await stand.call("POST", "/compute/v2.1/os-keypairs", {"keypair": {"name": "k", "public_key": KEY}})
        data = base64.b64encode(b"#cloud-config\n").decode()
        server = await self.a_server(stand, key_name="k", user_data=data, metadata={"a": "b"})
        assert server["status"] == "ACTIVE"
        assert server["OS-EXT-SRV-ATTR:host"].startswith("compute")
        spec = stand.machines.specs[server["id"]]
        assert (spec.public_key, spec.user_data, spec.metadata) == (KEY, "#cloud-config\n", {"a": "b"})
        assert server["addresses"]["net1"][0]["addr"] == str(spec.nics[0].address)
        newest = await stand.call(
            "GET", f"/compute/v2.1/servers/{server['id']}", headers={"OpenStack-API-Version": "compute 2.93"}
        )
        assert newest.body["server"]["OS-EXT-SRV-ATTR:hostname"] == "direct-1"
        assert newest.body["server"]["flavor"]["original_name"] == "m1.tiny"

    async def test_a_deleted_server_takes_the_port_that_nova_made_and_leaves_the_others(self, stand: Stand) -> None:
        port = await stand.call("POST", "/network/v2.0/ports", {"port": {"network_id": await network(stand, "net0")}})
        own = port.body["port"]["id"]
        server = await self.a_server(stand, networks=[{"port": own}, {"uuid": await network(stand, "net1")}])
        assert len(stand.cloud.neutron.ports) == 2
        assert (await stand.call("DELETE", f"/compute/v2.1/servers/{server['id']}")).status == 204
        await stand.until(lambda: not stand.cloud.nova.servers)
        assert list(stand.cloud.neutron.ports) == [own]
        assert (await stand.get(f"/network/v2.0/ports/{own}"))["port"]["device_id"] == ""
        assert (await stand.call("GET", f"/compute/v2.1/servers/{server['id']}")).status == 404

    async def test_a_server_is_stopped_and_started(self, stand: Stand) -> None:
        server = await self.a_server(stand)
        action = f"/compute/v2.1/servers/{server['id']}/action"
        record = stand.cloud.nova.servers[server["id"]]
        assert (await stand.call("POST", action, {"os-stop": None})).status == 202
        await stand.until(lambda: record.status == "SHUTOFF")
        assert stand.machines.off == {server["id"]}
        assert (await stand.call("POST", action, {"os-stop": None})).status == 409
        await stand.call("POST", action, {"os-start": None})
        await stand.until(lambda: record.status == "ACTIVE")
        assert not stand.machines.off

    @pytest.mark.parametrize(
        ("away", "status", "back"), [("suspend", "SUSPENDED", "resume"), ("pause", "PAUSED", "unpause")]
    )
    async def test_a_server_is_suspended_and_paused(self, stand: Stand, away: str, status: str, back: str) -> None:
        server = await self.a_server(stand)
        action = f"/compute/v2.1/servers/{server['id']}/action"
        record = stand.cloud.nova.servers[server["id"]]
        assert (await stand.call("POST", action, {back: None})).status == 409
        assert (await stand.call("POST", action, {away: None})).status == 202
        await stand.until(lambda: record.status == status)
        assert stand.machines.off == {server["id"]}
        for other in (away, "os-stop", "os-start"):
            refused = await stand.call("POST", action, {other: None})
            message = (
                f"Cannot '{other.removeprefix('os-')}' instance {server['id']} while it is in vm_state {status.lower()}"
            )
            assert (refused.status, refused.body["conflictingRequest"]["message"]) == (409, message)
        assert (await stand.call("POST", action, {back: None})).status == 202
        await stand.until(lambda: record.status == "ACTIVE")
        assert not stand.machines.off

    async def test_the_console_shows_what_the_machine_printed(self, stand: Stand) -> None:
        server = await self.a_server(stand)
        action = f"/compute/v2.1/servers/{server['id']}/action"
        output = (await stand.call("POST", action, {"os-getConsoleOutput": {"length": 1}})).body["output"]
        assert output == "ready\n"

    async def test_a_volume_goes_into_a_server_and_out_again(self, stand: Stand) -> None:
        server = await self.a_server(stand)
        volume = (await stand.call("POST", f"{stand.cinder}/volumes", {"volume": {"size": 1}})).body["volume"]["id"]
        await stand.until(lambda: stand.cloud.cinder.volumes[volume].status == "available")
        attachments = f"/compute/v2.1/servers/{server['id']}/os-volume_attachments"
        made = await stand.call("POST", attachments, {"volumeAttachment": {"volumeId": volume}})
        assert made.body["volumeAttachment"]["device"] == "/dev/vdb"
        assert (await stand.call("DELETE", f"{stand.cinder}/volumes/{volume}")).status == 400
        assert (await stand.call("DELETE", f"{attachments}/{volume}")).status == 202
        assert (await stand.get(f"{stand.cinder}/volumes/{volume}"))["volume"]["status"] == "available"

    @pytest.mark.parametrize(
        ("change", "field"),
        [
            ({"flavorRef": "zz"}, "Flavor zz"),
            ({"imageRef": "zz"}, "image"),
            ({"name": ""}, "name"),
            ({"key_name": "zz"}, "key_name"),
        ],
    )
    async def test_a_bad_request_is_refused_with_its_reason(self, stand: Stand, change: Json, field: str) -> None:
        server = {"name": "s", "flavorRef": "1", "networks": "none", **change}
        answer = await stand.call("POST", "/compute/v2.1/servers", {"server": server})
        assert answer.status == 400
        assert field in answer.body["badRequest"]["message"]
        assert stand.left() == {}


class TestNeutron:
    async def test_addresses_start_at_ten_and_are_not_given_out_again_at_once(self, stand: Stand) -> None:
        body = {"port": {"network_id": await network(stand, "net0")}}
        first = (await stand.call("POST", "/network/v2.0/ports", body)).body["port"]
        assert first["fixed_ips"][0]["ip_address"].endswith(".10")
        await stand.call("DELETE", f"/network/v2.0/ports/{first['id']}")
        second = (await stand.call("POST", "/network/v2.0/ports", body)).body["port"]
        assert second["fixed_ips"][0]["ip_address"].endswith(".11")

    async def test_an_asked_address_is_given_once(self, stand: Stand) -> None:
        network_id = await network(stand, "net0")
        prefix = str(stand.cloud.addresses.network(0)).rsplit(".", 1)[0]
        body = {"port": {"network_id": network_id, "fixed_ips": [{"ip_address": f"{prefix}.77"}]}}
        assert (await stand.call("POST", "/network/v2.0/ports", body)).status == 201
        again = await stand.call("POST", "/network/v2.0/ports", body)
        assert (again.status, again.body["NeutronError"]["type"]) == (409, "IpAddressAlreadyAllocated")
        outside = {"port": {"network_id": network_id, "fixed_ips": [{"ip_address": "8.8.8.8"}]}}
        refused = await stand.call("POST", "/network/v2.0/ports", outside)
        assert (refused.status, refused.body["NeutronError"]["type"]) == (400, "InvalidIpForNetwork")
        assert stand.cloud.quotas.used(stand.project_id, "port") == 1

    async def test_a_full_network_says_so(self, stand: Stand) -> None:
        net = (await stand.call("POST", "/network/v2.0/networks", {"network": {"name": "tiny"}})).body["network"]["id"]
        subnet = {"subnet": {"network_id": net, "cidr": "10.1.1.0/30", "ip_version": 4}}
        assert (await stand.call("POST", "/network/v2.0/subnets", subnet)).status == 201
        body = {"port": {"network_id": net}}
        assert (await stand.call("POST", "/network/v2.0/ports", body)).status == 201
        full = await stand.call("POST", "/network/v2.0/ports", body)
        assert (full.status, full.body["NeutronError"]["type"]) == (409, "IpAddressGenerationFailure")

    async def test_ports_are_filtered(self, stand: Stand) -> None:
        net0, net1 = await network(stand, "net0"), await network(stand, "net1")
        for name, net in (("a", net0), ("b", net1), ("c", net1)):
            await stand.call("POST", "/network/v2.0/ports", {"port": {"network_id": net, "name": name}})
        listed = await stand.get(f"/network/v2.0/ports?network_id={net1}&name=c")
        assert [port["name"] for port in listed["ports"]] == ["c"]
        only = await stand.get("/network/v2.0/ports?name=a&fields=name")
        assert only["ports"] == [{"name": "a"}]
        address = (await stand.get("/network/v2.0/ports?name=b"))["ports"][0]["fixed_ips"][0]["ip_address"]
        found = await stand.get(f"/network/v2.0/ports?fixed_ips=ip_address%3D{address}")
        assert [port["name"] for port in found["ports"]] == ["b"]

    async def test_a_floating_ip_leads_to_a_port(self, stand: Stand) -> None:
        port = (
            await stand.call("POST", "/network/v2.0/ports", {"port": {"network_id": await network(stand, "net0")}})
        ).body["port"]
        body = {"floatingip": {"floating_network_id": await network(stand, "public"), "port_id": port["id"]}}
        floating = (await stand.call("POST", "/network/v2.0/floatingips", body)).body["floatingip"]
        assert floating["fixed_ip_address"] == port["fixed_ips"][0]["ip_address"]
        assert floating["floating_ip_address"].split(".")[2] == "254"
        await stand.call("DELETE", f"/network/v2.0/ports/{port['id']}")
        assert (await stand.get(f"/network/v2.0/floatingips/{floating['id']}"))["floatingip"]["port_id"] is None
        inside = {"floatingip": {"floating_network_id": await network(stand, "net0")}}
        assert (await stand.call("POST", "/network/v2.0/floatingips", inside)).status == 400

    async def test_the_machines_hear_where_a_floating_ip_leads(self, stand: Stand) -> None:
        net0, public = await network(stand, "net0"), await network(stand, "public")
        ports = [
            (await stand.call("POST", "/network/v2.0/ports", {"port": {"network_id": net0}})).body["port"]
            for _ in range(2)
        ]
        one, other = (port["fixed_ips"][0]["ip_address"] for port in ports)
        body = {"floatingip": {"floating_network_id": public, "port_id": ports[0]["id"]}}
        floating = (await stand.call("POST", "/network/v2.0/floatingips", body)).body["floatingip"]
        path, address = f"/network/v2.0/floatingips/{floating['id']}", floating["floating_ip_address"]
        await stand.until(lambda: stand.machines.fixed_by_floating == {address: one})
        await stand.call("PUT", path, {"floatingip": {"port_id": ports[1]["id"]}})
        await stand.until(lambda: stand.machines.fixed_by_floating == {address: other})
        await stand.call("DELETE", f"/network/v2.0/ports/{ports[1]['id']}")
        await stand.until(lambda: not stand.machines.fixed_by_floating)
        await stand.call("PUT", path, {"floatingip": {"port_id": ports[0]["id"]}})
        await stand.until(lambda: stand.machines.fixed_by_floating == {address: one})
        await stand.call("DELETE", path)
        await stand.until(lambda: not stand.machines.fixed_by_floating)

    async def test_a_router_holds_its_subnet(self, stand: Stand) -> None:
        router = (await stand.call("POST", "/network/v2.0/routers", {"router": {"name": "r"}})).body["router"]["id"]
        net = (await stand.call("POST", "/network/v2.0/networks", {"network": {"name": "n"}})).body["network"]["id"]
        subnet = (
            await stand.call(
                "POST", "/network/v2.0/subnets", {"subnet": {"network_id": net, "cidr": "10.2.0.0/24", "ip_version": 4}}
            )
        ).body["subnet"]["id"]
        path = f"/network/v2.0/routers/{router}"
        added = await stand.call("PUT", f"{path}/add_router_interface", {"subnet_id": subnet})
        port = (await stand.get(f"/network/v2.0/ports/{added.body['port_id']}"))["port"]
        assert port["fixed_ips"][0]["ip_address"] == "10.2.0.1"
        assert (await stand.call("DELETE", path)).body["NeutronError"]["type"] == "RouterInUse"
        assert (await stand.call("DELETE", f"/network/v2.0/networks/{net}")).status == 409
        await stand.call("PUT", f"{path}/remove_router_interface", {"subnet_id": subnet})
        assert (await stand.call("DELETE", path)).status == 204
        assert (await stand.call("DELETE", f"/network/v2.0/networks/{net}")).status == 204
        assert stand.left() == {}

    async def test_two_clouds_have_different_addresses(self, stand: Stand) -> None:
        from clouds.openstack_stand import standing

        async with standing(CloudSettings()) as other:
            assert other.cloud.addresses.octet != stand.cloud.addresses.octet


class TestGlance:
    async def test_an_image_keeps_the_size_and_sums_of_its_bits(self, stand: Stand) -> None:
        bits = b"kubevnfm" * 100_000
        body = {"name": "i", "disk_format": "qcow2", "container_format": "bare", "os_distro": "ubuntu"}
        image = (await stand.call("POST", "/image/v2/images", body)).body
        assert (image["status"], image["os_distro"]) == ("queued", "ubuntu")
        path = f"/image/v2/images/{image['id']}"
        octets = {"Content-Type": "application/octet-stream"}
        assert (await stand.call("PUT", f"{path}/file", data=bits, headers=octets)).status == 204
        shown = await stand.get(path)
        assert (shown["status"], shown["size"]) == ("active", len(bits))
        assert shown["checksum"] == hashlib.md5(bits).hexdigest()
        assert shown["os_hash_value"] == hashlib.sha512(bits).hexdigest()
        assert (await stand.call("PUT", f"{path}/file", data=b"x", headers=octets)).status == 409
        assert (await stand.call("DELETE", path)).status == 204
        assert stand.left() == {}

    async def test_dummy_and_ubuntu_are_there(self, stand: Stand) -> None:
        images = (await stand.get("/image/v2/images"))["images"]
        assert {image["name"] for image in images} == {"dummy", "ubuntu"}
        assert {image["status"] for image in images} == {"active"}


class TestCinder:
    async def test_a_bad_size_is_refused(self, stand: Stand) -> None:
        for size in (0, "x", None):
            answer = await stand.call("POST", f"{stand.cinder}/volumes", {"volume": {"size": size}})
            assert answer.status == 400
            assert "size" in answer.body["badRequest"]["message"]

    async def test_volumes_are_listed_by_name(self, stand: Stand) -> None:
        for name in ("a", "b"):
            await stand.call("POST", f"{stand.cinder}/volumes", {"volume": {"size": 1, "name": name}})
        listed = await stand.get(f"{stand.cinder}/volumes/detail?name=b")
        assert [volume["name"] for volume in listed["volumes"]] == ["b"]
