"""The rows that drivers look up by name: VIMs of the instance."""

import kubevnfm_broker as broker


class CommonDbMixin:
    """Finds a VIM; there is no database behind it."""

    def _get_by_name(self, context, model, name):
        """The VIM of that name, or None."""
        if getattr(model, "__name__", "") != "Vim":
            raise broker.refused("CommonDbMixin._get_by_name of %s" % getattr(model, "__name__", model))
        return broker.vim_by_name(name)

    def __getattr__(self, name):
        raise broker.refused("CommonDbMixin.%s" % name)
