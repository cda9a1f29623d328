"""What stands behind the domain's ports: OpenStack's APIs, the package's files, the user data process."""
