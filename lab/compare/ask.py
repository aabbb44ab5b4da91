#!/usr/bin/env python3
"""Asks the worker of a command for turns, one in four of them slow, chosen by the seed.

    ask.py SEED COMMAND...
"""

import os
import random
import subprocess
import sys
import time

TURNS = 120
GAP_S = 0.003

dice = random.Random(int(sys.argv[1]))
worker = subprocess.Popen(
    sys.argv[2:],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    bufsize=0,
    # So that other work on the machine is not what makes turns slow.
    preexec_fn=lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
)
for _ in range(TURNS):
    time.sleep(GAP_S)
    worker.stdin.write(b"s" if dice.randrange(4) == 0 else b"f")
    if worker.stdout.read(1) == b"":
        sys.exit("the worker is gone")
worker.stdin.close()
sys.exit(worker.wait())
