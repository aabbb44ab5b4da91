"""Life beside a freeze that has nothing to do with it: services that wait for somebody, a job that
is done again and again."""

import sys

from stage import free_port, need

CLOCK = "while sleep 0.25; do date >>{log}; done"
COUNT = """
import time
open("/proc/self/comm", "w").write("metrics")
while True:
    sum(n * n for n in range(60_000))
    time.sleep(0.1)
"""


def neighbours(stage):
    """Starts them."""
    need("sh", "tail", "socat")
    log = stage.directory / "clock.log"
    log.touch()
    stage.start(["sh", "-c", CLOCK.format(log=log)])
    stage.start(["tail", "-n", "0", "-f", log])
    stage.start(["socat", f"TCP-LISTEN:{free_port()},bind=127.0.0.1,fork,reuseaddr", "EXEC:cat"])
    words = ["-m", "http.server", free_port(), "--bind", "127.0.0.1"]
    stage.start([sys.executable, *words, "--directory", stage.directory])
    stage.start([sys.executable, "-c", COUNT])
