"""The web page, ``/ui/``: its files, and the sessions of those that have logged in to it."""
