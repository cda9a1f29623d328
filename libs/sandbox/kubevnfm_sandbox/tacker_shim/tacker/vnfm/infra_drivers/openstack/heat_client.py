"""The resources of the instance's own stack, as Heat's client gives them. Nothing is asked over the network."""

import kubevnfm_broker as broker


class HeatClient:
    """Reads the stack of the instance; ``vim`` is not used: there is no other stack."""

    def __init__(self, vim=None, region_name=None):
        self.resources, self.stacks = _Resources(), _Stacks()

    def get(self, stack_id):
        return broker.stack(stack_id)

    def resource_get(self, stack_id, rsc_name):
        return broker.resource(stack_id, rsc_name)

    def resource_get_list(self, stack_id, nested_depth=0):
        return broker.resources(stack_id, nested_depth)

    def __getattr__(self, name):
        raise broker.refused("HeatClient.%s" % name)


class _Resources:
    def get(self, stack_id, resource_name):
        return broker.resource(stack_id, resource_name)

    def list(self, stack_id, nested_depth=0, **_):
        return broker.resources(stack_id, nested_depth)

    def __getattr__(self, name):
        raise broker.refused("HeatClient.resources.%s" % name)


class _Stacks:
    def get(self, stack_id):
        return broker.stack(stack_id)

    def __getattr__(self, name):
        raise broker.refused("HeatClient.stacks.%s" % name)
