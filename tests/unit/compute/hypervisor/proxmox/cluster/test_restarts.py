from compute.hypervisor.proxmox.cluster.restarts import Restarts


class Timer:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def restarted(after: float = 1.0) -> tuple[Restarts, Timer]:
    """A VM that ended, and was started again so many seconds later."""
    timer = Timer()
    restarts = Restarts(30.0, timer)
    restarts.ended(100)
    timer.now += after
    restarts.started(100, timer.now)
    return restarts, timer


def test_a_call_right_after_a_restart_is_not_kept_waiting() -> None:
    assert restarted()[0].pause_seconds(100) == 0.0


def test_a_later_call_comes_when_the_lock_is_about_to_be_free() -> None:
    restarts, timer = restarted()
    timer.now += 9
    pause = restarts.pause_seconds(100)
    # The call itself waits ten seconds for the lock: together past the clean-up's end.
    assert 10 < pause < 20
    assert 10 + pause + restarts.call_seconds > 33.6
    timer.now += pause
    assert restarts.pause_seconds(100) < 0.001


def test_once_the_clean_up_is_over_nothing_is_remembered() -> None:
    restarts, timer = restarted()
    timer.now += 40
    assert restarts.pause_seconds(100) == 0.0
    assert restarts._windows == restarts._ended == {}


def test_a_start_that_takes_long_counts_from_when_it_was_sent() -> None:
    """The clean-up, which begins during the start, waits for its lock, and then for the VM."""
    timer = Timer()
    restarts = Restarts(30.0, timer)
    restarts.ended(100)
    timer.now += 1
    posted = timer.now
    timer.now += 8
    restarts.started(100, posted)
    pause = restarts.pause_seconds(100)
    assert pause > 0
    assert pause + restarts.call_seconds > 30
    timer.now += 31
    assert restarts.pause_seconds(100) == 0.0


def test_who_starts_late_finds_the_clean_up_done() -> None:
    restarts, timer = restarted(after=5.0)
    timer.now += 5
    assert restarts.pause_seconds(100) == 0.0


def test_a_vm_that_ends_again_begins_again() -> None:
    restarts, timer = restarted()
    timer.now += 9
    restarts.ended(100)
    assert restarts.pause_seconds(100) == restarts.pause_seconds(101) == 0.0


def test_it_may_be_configured_that_nothing_cleans_up() -> None:
    timer = Timer()
    restarts = Restarts(0.0, timer)
    restarts.ended(100)
    restarts.started(100, timer.now)
    timer.now += 0.1
    assert restarts.pause_seconds(100) == 0.0
    assert restarts.call_seconds == 0.0


def test_what_is_remembered_is_bounded() -> None:
    timer = Timer()
    restarts = Restarts(30.0, timer)
    for vmid in range(3000):
        restarts.ended(vmid)
        timer.now += 1
    assert len(restarts._ended) <= 1002
