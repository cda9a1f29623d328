"""The smallest program of the sandbox: shows that it can be started."""


class Refused(Exception):
    """Never raised; every entry module has it."""


def run(given: object, package: str) -> dict[str, object]:
    """Return the answer that ``Sandbox.state`` expects."""
    return {"confined": True}
