"""The arguments of v1 classes: objects with attributes in snake_case where SOL003 has camelCase members."""

import re

_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")
_LISTS = {
    "ext_virtual_links", "ext_managed_virtual_links", "vim_connection_info", "ext_cps", "ext_link_ports", "cp_config",
    "cp_protocol_data", "ip_addresses", "fixed_addresses", "vnf_link_port", "scale_status", "ext_cp_info",
    "vnfc_resource_info", "vnfc_cp_info", "storage_resource_ids", "virtual_storage_resource_info",
    "ext_virtual_link_info", "ext_managed_virtual_link_info", "vnf_virtual_link_resource_info", "vnfc_instance_id",
}
_FREE = {
    "additional_params", "access_info", "interface_info", "extra", "extensions", "vnf_configurable_properties",
    "metadata",
}
"""KeyValuePairs: passed as plain dicts with unchanged keys."""
_KEYED = {"cp_config": "cp_instance_id", "vim_connection_info": "id"}
"""Maps of the v2 API that are lists in v1, with the attribute that contains the map's key there."""


def snake(name):
    return _HUMP.sub(lambda match: "_" + match.group(1).lower(), name)


class RequestView:
    """A read-only object over a JSON object. Attributes that the object lacks are None, or an empty list."""

    def __init__(self, members):
        self.__dict__.update(members)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return [] if name in _LISTS else None

    def __contains__(self, name):
        return name in self.__dict__

    def __getitem__(self, name):
        return getattr(self, name)

    def get(self, name, default=None):
        value = getattr(self, name)
        return default if value is None else value

    def to_dict(self):
        return {name: _plain(value) for name, value in self.__dict__.items()}

    def __repr__(self):
        return "RequestView(%s)" % ", ".join(sorted(self.__dict__))

    @classmethod
    def from_document(cls, document):
        return _view(document)


def _view(node):
    members = {}
    for name, value in node.items():
        attribute = snake(name)
        members[attribute] = _value(attribute, value)
    return RequestView(members)


def _value(attribute, value):
    if attribute in _FREE:
        return value
    if attribute in _KEYED and isinstance(value, dict):
        return [_view({**(part or {}), _KEYED[attribute]: key}) for key, part in value.items()]
    if isinstance(value, dict):
        return _view(value)
    if isinstance(value, list):
        return [_view(part) if isinstance(part, dict) else part for part in value]
    return value


def _plain(value):
    if isinstance(value, RequestView):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value


class VnfResource:
    """One entry of ``grant_info``."""

    def __init__(self, vdu, image_id):
        self.resource_name = vdu
        self.resource_type = "image"
        self.resource_identifier = image_id
        self.resource_status = "CREATED"


def grant_info(images):
    """``{vdu: [VnfResource]}`` with the Glance id of each VDU's image."""
    return {vdu: [VnfResource(vdu, image_id)] for vdu, image_id in images.items()}
