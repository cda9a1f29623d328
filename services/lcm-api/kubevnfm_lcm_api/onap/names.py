"""Names of instances in the style of ONAP's plug-in, such as ``jovial_lamport``."""

from __future__ import annotations

import secrets
from typing import Final

_FIRST: Final = (
    "agile able apt brave bright brisk calm clear clever cosy crisp eager early fair fine firm fresh gentle glad grand "
    "happy hardy jolly keen kind lively loyal lucid merry mild modest neat noble patient plain polite proud quick quiet "
    "ready sharp shiny smart solid steady sunny swift tidy warm wise witty zesty"
)
_SECOND: Final = (
    "babbage bartik bell bohr boole cerf codd curie dijkstra einstein engelbart euler faraday fermi franklin galileo gauss "
    "goldberg hamilton hertz hilbert hopper johnson kepler knuth kirch lamarr lamport leavitt liskov lovelace maxwell "
    "mendel meitner newton noether pascal perlman planck postel ride ritchie shannon tesla thompson turing volta wing wozniak"
)
_MOST: Final = 100_000


def new_name(*, is_numbered: bool) -> str:
    """Return a random name; ``is_numbered``: with a number behind it, as others may have the one without."""
    number = str(secrets.randbelow(_MOST)) if is_numbered else ""
    return f"{secrets.choice(_FIRST.split())}_{secrets.choice(_SECOND.split())}{number}"
