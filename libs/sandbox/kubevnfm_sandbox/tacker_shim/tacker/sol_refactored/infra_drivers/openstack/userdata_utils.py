"""The base of v2 classes; the functions are offered here too, for classes that were written when they were here."""

import abc

from tacker.sol_refactored.common.common_script_utils import *  # noqa: F403


class AbstractUserData(metaclass=abc.ABCMeta):
    """One method per operation; each returns what Heat is given (``template``, ``parameters``, ``files``).

    Arguments of all: the request, the VnfInstance, the GrantRequest and the Grant as dicts, and the package's folder.
    """

    @staticmethod
    @abc.abstractmethod
    def instantiate(req, inst, grant_req, grant, tmp_csar_dir):
        """Return all three; the other methods return what changes."""

    scale = scale_rollback = change_ext_conn = change_ext_conn_rollback = heal = instantiate
    change_vnfpkg = change_vnfpkg_rollback = instantiate
