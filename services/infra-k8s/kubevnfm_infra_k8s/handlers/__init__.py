"""The handlers of infra-k8s: one method for each command."""
