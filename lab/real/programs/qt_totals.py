"""A Qt program that computes totals in a slot: `qt_totals.py S`. Key `q` does so quickly, key `s`
for S seconds on the main thread, key `w` in a second thread for which the slot waits. Turns of more
than a second are told by their begin and end (CLOCK_MONOTONIC, ns), the second thread by its id."""

import sys
import threading
import time

from PyQt5.QtCore import Qt, QThread, QTimer
from PyQt5.QtWidgets import QApplication, QLabel

LONG_S = 1.0
SLOW_S = float(sys.argv[1])


def now_ns():
    """The time now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def add_up_totals(seconds):
    """Adds up all that there is."""
    end = time.monotonic() + seconds
    total = 0
    while time.monotonic() < end:
        total += sum(n * n for n in range(1000))
    return total


class Upload(QThread):
    """A second thread that sends the totals away, and waits for the other side."""

    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.tid = seconds, None

    def run(self):
        """The thread."""
        self.tid = threading.get_native_id()
        self.send_totals()

    def send_totals(self):
        """Sends them to a device that takes its time."""
        time.sleep(self.seconds)


class Window(QLabel):
    """The window."""

    def __init__(self):
        super().__init__("Press q, s or w")
        self.setWindowTitle("totals ready")
        self.resize(300, 200)
        self.turns = 0
        self.timer = QTimer(self)
        self.timer.timeout.connect(lambda: self.setText(time.strftime("%H:%M:%S")))
        self.timer.start(100)

    def keyPressEvent(self, event):
        """A key was pressed."""
        if event.isAutoRepeat():
            return
        begin = now_ns()
        tid = 0
        if event.key() == Qt.Key_Q:
            add_up_totals(0.01)
        elif event.key() == Qt.Key_S:
            add_up_totals(SLOW_S)
        elif event.key() == Qt.Key_W:
            upload = Upload(SLOW_S)
            upload.start()
            upload.wait()
            tid = upload.tid
        self.turns += 1
        self.setWindowTitle(f"totals done {self.turns}")
        end = now_ns()
        if end - begin > LONG_S * 1e9:
            print("turn", begin, end, tid, flush=True)


with open("/proc/self/comm", "w", encoding="ascii") as comm:
    comm.write("qt_totals")
application = QApplication(sys.argv)
window = Window()
window.show()
application.exec()
