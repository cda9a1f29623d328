"""The base of driver classes. A phase that a VNFD maps to a class must be a method of it: checked when the package is onboarded."""


class VnflcmMgmtAbstractDriver:
    """A driver; each phase is a method with context, instance, request, grant and grant request."""

    def mgmt_call(self, phase, *args, **kwargs):
        """Run the phase of that name."""
        return getattr(self, phase)(*args, **kwargs)
