"""What stands behind the ports: OpenStack and Kubernetes; and the internal HTTP API in front."""
