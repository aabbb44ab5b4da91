"""Qt programs in Python whose slots compute, or wait for another thread."""

from case import Root, Truth, freeze
from freezes.panels import (
    LEAST_SHARE,
    MARGIN_S,
    PYTHON,
    open_panel,
    share_of_cpu,
    slow_turn,
    state_of,
)
from stage import Fault, need


@freeze("toolkits", "qt-slot-computes")
def slot_computes(stage):
    """A key handler of a PyQt program adds up numbers on the main thread."""
    need(PYTHON)
    stage.display()
    stage.session_bus()
    panel = open_panel(stage, "qt_totals.py", stage.freeze_s + MARGIN_S)
    frozen, share = slow_turn(stage, panel, lambda: share_of_cpu(panel.pid))
    if share < LEAST_SHARE:
        raise Fault(f"/proc: the main thread had only {share:.0%} of a CPU")
    return Truth(
        text="LongRunning qt_totals in add_up_totals",
        victims=(panel.pid,),
        roots=(Root(panel.pid, ("LongRunning",), thread=panel.pid),),
        frozen=frozen[:2],
        witness=f"/proc: the main thread had {share:.0%} of a CPU",
        function=r"\badd_up_totals\b",
    )


@freeze("toolkits", "qt-waits-for-thread")
def waits_for_thread(stage):
    """A key handler of a PyQt program waits (QThread::wait) until a second thread has ended, which
    sleeps."""
    need(PYTHON)
    stage.display()
    stage.session_bus()
    panel = open_panel(stage, "qt_totals.py", stage.freeze_s + MARGIN_S)
    (*frozen, tid), states = slow_turn(
        stage, panel, lambda: (state_of(panel.pid), share_of_cpu(panel.pid)), key="w"
    )
    if states[0] != "S":
        raise Fault(f"/proc: the main thread is {states[0]}")
    return Truth(
        text="main thread in QThread::wait; root the second thread, which sleeps",
        victims=(panel.pid,),
        roots=(Root(panel.pid, ("LongWait",), thread=tid),),
        frozen=tuple(frozen),
        witness=f"/proc: the main thread sleeps and had {states[1]:.0%} of a CPU; the program says "
        f"that it waits for thread {tid}",
        function=r"\bsend_totals\b",
        waits_in=r"QThread::wait",
    )
