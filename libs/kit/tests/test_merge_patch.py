from kubevnfm_kit.merge_patch import merge_patch


def test_a_merge_patch_does_not_modify_its_arguments() -> None:
    target = {"a": {"b": 1, "c": 2}}
    assert merge_patch(target, {"a": {"b": None, "d": 3}}) == {"a": {"c": 2, "d": 3}}
    assert target == {"a": {"b": 1, "c": 2}}
