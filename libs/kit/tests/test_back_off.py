from kubevnfm_kit.back_off import BackOff


def test_pauses_double_up_to_the_longest() -> None:
    assert [BackOff(0.5, 3.0).after(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_any_number_of_failures_has_a_pause() -> None:
    assert (BackOff(0.5, 30.0).after(0), BackOff(0.5, 30.0).after(10**9)) == (0.5, 30.0)
