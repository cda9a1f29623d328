"""The part of Tacker's module names that the code of packages imports; the code is our own."""
