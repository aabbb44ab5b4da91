"""Programs that a person works with: at a terminal, or one line after the other."""

import concurrent.futures
import contextlib
import os
import pty
import queue
import re
import select
import subprocess
import threading
import time

from stage import PATIENCE_S, Fault, now_ns

# Between two turns of a program that is in use.
PAUSE_S = 0.05


class Terminal:
    """A program at a terminal of its own, at which a person types lines. Its prompt ends with a
    match of the pattern `prompt`. It waits for the person between two lines."""

    def __init__(self, stage, words, prompt):
        self.prompt = re.compile(prompt.encode() + rb"$")
        self.screen, its_end = pty.openpty()
        stage.callback(os.close, self.screen)
        self.process = stage.start(
            words,
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            env=stage.environment | {"TERM": "dumb"},
        )
        os.close(its_end)
        self.pid = self.process.pid
        self._until_prompt(b"")

    def _until_prompt(self, before):
        """Reads until the prompt is there, after what matches `before`."""
        seen = b""
        deadline = time.monotonic() + PATIENCE_S
        while before not in seen or not self.prompt.search(seen):
            if not select.select([self.screen], [], [], deadline - time.monotonic())[0]:
                raise Fault(f"{self.pid} shows no prompt, but: {seen!r}")
            seen += os.read(self.screen, 4096)
        return seen.decode(errors="replace")

    def type(self, line):
        """Types a line."""
        os.write(self.screen, line.encode() + b"\n")

    def enter(self, line):
        """Types a line and waits for the next prompt; gives what is on the screen then."""
        self.type(line)
        # The terminal shows the line that is typed.
        return self._until_prompt(b"\n")


def meanwhile(stage, turn):
    """Lets the program be in order for a while, in which it does `turn()` again and again."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        ordinary = pool.submit(stage.ordinary)
        while not ordinary.done():
            turn()
            time.sleep(PAUSE_S)


class Shell:
    """A database's shell as the program that a freeze is about. It is fed by a pipe, and prints a
    line for each statement."""

    def __init__(self, stage, words):
        self.program = stage.program(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.program.pid
        self.spans = queue.SimpleQueue()

    def ask(self, statement):
        """Has a statement executed; gives the line that it prints."""
        self.program.tell(statement)
        return self.program.line()

    def begin_to_ask(self, statement):
        """Gives it a statement that will take its time."""
        begin = now_ns()

        def read():
            # What went wrong instead is seen by who asks for the answer.
            with contextlib.suppress(Fault, OSError, ValueError):
                self.program.line()
                self.spans.put((begin, now_ns()))

        self.program.tell(statement)
        threading.Thread(target=read, daemon=True).start()

    def answered(self):
        """Waits for the answer to that statement; gives when it began and ended."""
        try:
            return self.spans.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Fault(f"{self.pid} does not answer") from None
