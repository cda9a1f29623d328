"""The ``kuryr-kubernetes`` management driver: kubeadm clusters whose pods and Services are in Neutron and Octavia."""
