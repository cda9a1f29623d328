"""``from oslo_config import cfg``: options that a script registers itself, each with its default, as no file is read."""

class NoSuchOptError(AttributeError):
    """The option was not registered."""


class Opt:
    """One option; of its type, help and limits nothing is used."""

    def __init__(self, name, type=None, default=None, *args, **kwargs):
        self.name, self.default = name, default
        self.dest = (kwargs.get("dest") or name).replace("-", "_")


class _Typed(Opt):
    def __init__(self, name, default=None, *args, **kwargs):
        kwargs.pop("type", None)
        super().__init__(name, None, default, *args, **kwargs)


class StrOpt(_Typed):
    pass


class BoolOpt(_Typed):
    pass


class IntOpt(_Typed):
    pass


class FloatOpt(_Typed):
    pass


class ListOpt(_Typed):
    pass


class DictOpt(_Typed):
    pass


class URIOpt(_Typed):
    pass


class PortOpt(_Typed):
    pass


class HostAddressOpt(_Typed):
    pass


class OptGroup:
    def __init__(self, name, title=None, help=None, **kwargs):
        self.name = name


class _Values:
    """The options of one group; those of none are the groups' owner's."""

    def __init__(self):
        self._values = {}

    def __getattr__(self, name):
        try:
            return self._values[name]
        except KeyError:
            raise NoSuchOptError("no such option %s: kubevnfm has no settings of Tacker" % name) from None

    __getitem__ = __getattr__

    def __contains__(self, name):
        return name in self._values


class ConfigOpts(_Values):
    def __call__(self, args=None, **kwargs):
        """Read nothing."""

    def register_opt(self, opt, group=None, **kwargs):
        self._of(group)._values.setdefault(opt.dest, opt.default)

    def register_opts(self, opts, group=None, **kwargs):
        for opt in opts:
            self.register_opt(opt, group)

    def register_cli_opt(self, opt, group=None):
        self.register_opt(opt, group)

    def register_cli_opts(self, opts, group=None):
        self.register_opts(opts, group)

    def register_group(self, group):
        self._of(group)

    def set_override(self, name, override, group=None):
        self._of(group)._values[name.replace("-", "_")] = override

    def set_default(self, name, default, group=None):
        self.set_override(name, default, group)

    def _of(self, group):
        if group is None:
            return self
        return self._values.setdefault(getattr(group, "name", group).replace("-", "_"), _Values())


CONF = ConfigOpts()
