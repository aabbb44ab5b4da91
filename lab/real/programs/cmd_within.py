"""Runs a command within a control group: `cmd_within.py FOLDER COMMAND...`, as cgexec does."""

import os
import sys

with open(os.path.join(sys.argv[1], "tasks"), "w", encoding="ascii") as file:
    file.write(str(os.getpid()))
os.execvp(sys.argv[2], sys.argv[2:])
