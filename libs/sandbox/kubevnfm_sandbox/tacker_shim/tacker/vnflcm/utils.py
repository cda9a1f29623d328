"""Where the package is, and the VIM of the instance."""

import kubevnfm_broker as broker


def _get_vnf_package_path(context, vnfd_id):
    """The folder of the instance's package."""
    return broker.package_folder(vnfd_id)


def _get_vim(context, vim_connection_info):
    """The first entry of the instance's vimConnectionInfo, without secrets."""
    return broker.vim(vim_connection_info)
