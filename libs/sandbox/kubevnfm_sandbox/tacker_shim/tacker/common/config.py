"""The settings of a Tacker: there is none here, so its files are not read, and each option has its default."""


def init(args=None, **kwargs):
    """Read nothing."""
