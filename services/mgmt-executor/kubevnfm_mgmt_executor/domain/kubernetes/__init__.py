"""The ``kubernetes`` management driver: kubeadm clusters on machines."""
