"""``python -m kubevnfm_cli``."""

from kubevnfm_cli.main import main

main()
