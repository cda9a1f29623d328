"""What scripts do with instances and merge patches."""


def json_merge_patch(target, patch):
    """RFC 7396, changing ``target``."""
    if not isinstance(patch, dict):
        return patch
    merged = target if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = json_merge_patch(merged.get(name), value)
    return merged


def select_vim_info(vim_connection_info):
    """The first entry of a vimConnectionInfo map."""
    return next(iter(vim_connection_info.values()), None)
