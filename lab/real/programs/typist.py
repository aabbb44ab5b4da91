"""Somebody at a desktop: types words with pauses, and opens and closes a terminal, for ever."""

import subprocess
import time


def press(*words):
    subprocess.run(["xdotool", *words], check=False, stderr=subprocess.DEVNULL)


while True:
    for word in ("thank you ", "for the ", "letter of ", "last week."):
        press("type", "--delay", "60", word)
        time.sleep(0.4)
    press("key", "Return")
    terminal = subprocess.Popen(["xterm", "-e", "ls", "-l", "/usr/bin"])
    time.sleep(1.0)
    terminal.terminate()
    terminal.wait()
