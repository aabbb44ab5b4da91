"""A Qt window that packs albums: `qt_albums.py SMALL LARGE`. Key `q` has bzip2 pack the small file,
key `s` the large one; both wait for it (QProcess::waitForFinished). Turns of more than a second are
told by their begin and end (CLOCK_MONOTONIC, ns)."""

import sys
import time

from PyQt5.QtCore import QProcess, Qt, QTimer
from PyQt5.QtWidgets import QApplication, QLabel

LONG_S = 1.0


def now_ns():
    """The time now."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Window(QLabel):
    """The window."""

    def __init__(self):
        super().__init__("Press q or s")
        self.setWindowTitle("albums ready")
        self.resize(300, 200)
        self.turns = 0
        self.timer = QTimer(self)
        self.timer.timeout.connect(lambda: self.setText(time.strftime("%H:%M:%S")))
        self.timer.start(100)

    def pack_album(self, path):
        """Has it packed."""
        packer = QProcess(self)
        packer.start("bzip2", ["--keep", "--force", path])
        packer.waitForFinished(-1)

    def keyPressEvent(self, event):
        """A key was pressed."""
        keys = {Qt.Key_Q: sys.argv[1], Qt.Key_S: sys.argv[2]}
        if event.isAutoRepeat() or event.key() not in keys:
            return
        begin = now_ns()
        self.pack_album(keys[event.key()])
        self.turns += 1
        self.setWindowTitle(f"albums done {self.turns}")
        end = now_ns()
        if end - begin > LONG_S * 1e9:
            print("turn", begin, end, flush=True)


with open("/proc/self/comm", "w", encoding="ascii") as comm:
    comm.write("qt_albums")
application = QApplication(sys.argv)
window = Window()
window.show()
application.exec()
