"""Fixtures of vim-registry's tests."""

from worlds.vim_world import cluster, lab, make_cluster, settings, world

__all__ = ["cluster", "lab", "make_cluster", "settings", "world"]
