"""The model of a VIM, as drivers name it when they look one up."""


class Vim:
    """Stands for the table of VIMs."""
