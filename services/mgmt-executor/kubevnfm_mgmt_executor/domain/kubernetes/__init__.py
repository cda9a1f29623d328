"""The ``kubernetes`` management driver: kubeadm clusters on machines."""

from kubevnfm_mgmt_executor.domain.kubernetes.phases import PHASES

__all__ = ["PHASES"]
