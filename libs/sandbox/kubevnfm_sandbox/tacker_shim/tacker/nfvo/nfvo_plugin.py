"""VIMs: the driver sees those of its instance, creates one for the cluster that it has built, and deletes that one."""

import kubevnfm_broker as broker


class NfvoPlugin:
    """What is created and deleted here is carried out after the driver has ended well."""

    def get_vim(self, context, vim_id, fields=None, mask_password=True):
        return broker.vim_by_id(vim_id)

    def create_vim(self, context, vim):
        return broker.create_vim(vim)

    def delete_vim(self, context, vim_id):
        return broker.delete_vim(vim_id)

    def __getattr__(self, name):
        raise broker.refused("NfvoPlugin.%s" % name)
