"""The contract: every command and event of kubevnfm."""
