"""Kuryr's configuration: kuryr.conf, in the words of kuryr-kubernetes' installation manual.

The login to Keystone is in a file of its own, which only the controller gets: the daemon on the nodes talks to the
Kubernetes API alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kubevnfm_cluster.kuryr import KuryrParameters
from kubevnfm_events.kuryr import KuryrLogin, KuryrNetwork
from kubevnfm_kit.errors import Unprocessable
from kubevnfm_secrets import Secret

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where a pod finds the token of its service account and the cluster's CA."""
CA_FILE: Final = "/etc/ssl/certs/kuryr-ca-bundle.crt"
_DRIVERS: Final = {"nested-vlan": "vlan", "nested-macvlan": "macvlan"}
"""The module of kuryr.lib.binding.drivers by pod_vif_driver."""

Sections = Mapping[str, Mapping[str, str]]


def kuryr_conf(kuryr: KuryrParameters, network: KuryrNetwork, *, api_root: str) -> str:
    """Return kuryr.conf without secrets, for the controller and for the nodes."""
    defaults = {
        "project": network.project_id,
        # Kuryr knows one subnet of pods; further ones are for namespaces and pools, which are set up with kubectl.
        "pod_subnet": network.pod_subnets[0],
        "pod_security_groups": ",".join(network.pod_security_groups),
        "service_subnet": network.service_subnet,
        "ovs_bridge": kuryr.ovs_bridge,
        "resource_tags": network.tag,
    }
    if network.external_svc_net is not None:
        defaults["external_svc_net"] = network.external_svc_net
    if network.external_svc_subnet is not None:
        defaults["external_svc_subnet"] = network.external_svc_subnet
    sections: dict[str, Mapping[str, str]] = {
        "DEFAULT": {"use_stderr": "true"},
        "kubernetes": {
            "api_root": api_root,
            "token_file": f"{ACCOUNT}/token",
            "ssl_ca_crt_file": f"{ACCOUNT}/ca.crt",
            "ssl_verify_server_crt": "true",
            "pod_vif_driver": kuryr.pod_vif_driver,
            "port_debug": "true",
        },
        "cni_daemon": {"docker_mode": "true", "netns_proc_dir": "/host_proc"},
        "neutron_defaults": defaults,
        "octavia_defaults": {"member_mode": kuryr.octavia_mode},
        "vif_plug_ovs_privileged": {"helper_command": "privsep-helper"},
        "vif_plug_linux_bridge_privileged": {"helper_command": "privsep-helper"},
    }
    if kuryr.is_nested:
        assert network.worker_nodes_subnet is not None, "the request is refused without"
        sections["pod_vif_nested"] = {"worker_nodes_subnet": network.worker_nodes_subnet}
        driver = f"kuryr.lib.binding.drivers.{_DRIVERS[kuryr.pod_vif_driver]}"
        sections["binding"] = {"driver": driver, "link_iface": kuryr.link_iface}
    return rendered(sections)


def neutron_conf(network: KuryrNetwork, reveal: Callable[[Secret], str]) -> str:
    """Return the part of kuryr.conf by which the controller logs in; it holds a secret in clear."""
    login = network.login
    options = {"auth_url": login.auth_url, **_credentials(login, network, reveal)}
    if login.region is not None:
        options["region_name"] = login.region
    if login.ca_pem:
        options["cafile"] = CA_FILE
    return rendered({"neutron": options})


def _credentials(login: KuryrLogin, network: KuryrNetwork, reveal: Callable[[Secret], str]) -> Mapping[str, str]:
    if login.credential_id is not None and login.credential_secret is not None:
        # keystoneauth1's plugin; such a credential belongs to its project, so none is named.
        return {
            "auth_type": "v3applicationcredential",
            "application_credential_id": login.credential_id,
            "application_credential_secret": reveal(login.credential_secret),
        }
    if login.username is None or login.password is None:
        raise Unprocessable("kuryr.login", "an application credential, or a user with a password, expected")
    return {
        "auth_type": "password",
        "username": login.username,
        "password": reveal(login.password),
        "user_domain_name": login.user_domain_name or "Default",
        "project_id": network.project_id,
        "project_domain_name": login.project_domain_name or "Default",
    }


def rendered(sections: Sections) -> str:
    """Return the text of sections for oslo.config. Raises Unprocessable for a value with a line end."""
    lines: list[str] = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        for name, value in options.items():
            if "\n" in value or "\r" in value:
                raise Unprocessable(f"kuryr.{section}.{name}", "one line of text expected")
            # oslo.config replaces $name by the value of another option; $$ stands for the character.
            lines.append(f"{name} = {value.replace('$', '$$')}")
        lines.append("")
    return "\n".join(lines)
