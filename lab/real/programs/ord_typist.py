"""Somebody at a terminal: `ord_typist.py LOG SOCKET` types commands into tmux, key by key, and
writes when Enter was pressed and when the output was to be seen (CLOCK_MONOTONIC, ns)."""

import subprocess
import sys
import time

COMMANDS = ("ls -l /usr/bin | tail -n 3", "date", "ps | head -n 5", "wc -c /etc/services")
log, socket = sys.argv[1:]


def tmux(*words):
    return subprocess.run(
        ["tmux", "-S", socket, *words], check=True, capture_output=True, text=True
    ).stdout


def window_is_there():
    done = subprocess.run(["tmux", "-S", socket, "has-session", "-t", "work"], capture_output=True)
    return done.returncode == 0


while not window_is_there():
    time.sleep(0.1)
with open(log, "a", buffering=1, encoding="utf-8") as file:
    number = 0
    while True:
        # The shell joins the two, so that the typed line does not have what is looked for.
        for key in f"{COMMANDS[number % len(COMMANDS)]}; echo do''ne{number}":
            # A semicolon ends a command of tmux.
            tmux("send-keys", "-t", "work", "-l", "--", key.replace(";", "\\;"))
            time.sleep(0.07)
        begin = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        tmux("send-keys", "-t", "work", "Enter")
        while f"done{number}\n" not in tmux("capture-pane", "-p", "-t", "work"):
            time.sleep(0.02)
        end = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        file.write(f"{begin} {end}\n")
        number += 1
        time.sleep(0.5)
