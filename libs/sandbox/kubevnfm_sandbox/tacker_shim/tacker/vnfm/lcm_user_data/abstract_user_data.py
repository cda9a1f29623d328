"""The base of v1 classes."""

import abc


class AbstractUserData(metaclass=abc.ABCMeta):
    """Turns a request into the parameters of a Heat stack."""

    @staticmethod
    @abc.abstractmethod
    def instantiate(base_hot_dict=None, vnfd_dict=None, inst_req_info=None, grant_info=None):
        """Return a dict of Heat parameters."""
