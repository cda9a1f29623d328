"""The objects that drivers get and make."""

from tacker.objects.fields import Record


class VimConnectionInfo(Record):
    """How a VIM is reached."""

    @classmethod
    def obj_from_primitive(cls, primitive, context=None):
        return cls(**primitive)

    def to_dict(self):
        return dict(self._fields())


class VnfInstance(Record):
    """The instance. What a driver leaves in it when it ends is stored, as what it has saved is if it fails."""

    def save(self):
        self._saved()
