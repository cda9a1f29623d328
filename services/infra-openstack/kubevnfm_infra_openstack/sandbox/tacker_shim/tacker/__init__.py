"""The part of Tacker's module names that LCM operation user data classes import; the code is our own."""
