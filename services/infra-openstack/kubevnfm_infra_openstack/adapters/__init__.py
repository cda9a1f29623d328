"""Implements the domain's ports with OpenStack's APIs, the packages' files and the user data process."""
