"""How long a trace of a busy desktop takes to be saved, names and all.

The desktop is made of real programs on a display of its own: a browser with a page that moves and
computes, an editor, progress bars that pulse, a script in node, one in Python, and a compile, over
and over. What is timed is from the end of the recording to the end of hangdog.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

import recorders
import workloads

DISPLAY = ":93"
SECONDS = 60
PAGE = """<!doctype html><canvas id=c width=700 height=500></canvas><div id=t></div><script>
const g = c.getContext("2d"); let n = 0;
function draw() {
  for (let i = 0; i < 400; i++) {
    g.fillStyle = `hsl(${(n + i) % 360} 80% 50%)`;
    g.fillRect((n * 7 + i * 13) % 700, (i * 29) % 500, 9, 9);
  }
  t.textContent = JSON.stringify([...Array(300).keys()].map(x => x * n).sort()).slice(0, 400);
  n++; requestAnimationFrame(draw);
}
draw();
</script>"""
NODE = "setInterval(() => JSON.stringify([...Array(9000).keys()].map(String).sort()), 20)"
PYTHON = (
    "import json, time\n"
    "while True:\n"
    "    json.loads(json.dumps(list(range(20000)))); time.sleep(0.02)\n"
)


def programs(directory: pathlib.Path):
    """What is on the desktop: a name and a command each."""
    page = directory / "page.html"
    page.write_text(PAGE)
    text = directory / "text.txt"
    text.write_text("a line of text to look at\n" * 4000)
    workloads.write_project(directory / "project")
    compile_again = f"while :; do make -s -C '{directory}/project'; done"
    browser = [
        "chromium",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={directory}/browser",
        page.as_uri(),
    ]
    pulse = ["zenity", "--progress", "--pulsate", "--text=busy"]
    return [
        browser,
        ["mousepad", str(text)],
        pulse,
        pulse,
        ["node", "-e", NODE],
        ["python3", "-c", PYTHON],
        ["sh", "-c", compile_again],
    ]


@contextlib.contextmanager
def desktop(directory):
    """The desktop, while it lasts; gives what is on it, and what is not installed."""
    with contextlib.ExitStack() as stack:

        def start(words, **more):
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                **more,
            )

            def end():
                with contextlib.suppress(ProcessLookupError):
                    signal_group(process)
                process.wait()

            stack.callback(end)

        start(["Xvfb", DISPLAY, "-screen", "0", "1280x1024x24"])
        time.sleep(1)
        running, absent = [], []
        environment = {"DISPLAY": DISPLAY, "HOME": str(directory), "PATH": "/usr/bin:/bin"}
        for words in programs(directory):
            if shutil.which(words[0]):
                start(words, env=environment)
                running.append(words[0])
            else:
                absent.append(words[0])
        time.sleep(3)
        yield running, absent


def signal_group(process):
    """Ends a program with all that it has started."""
    os.killpg(process.pid, signal.SIGKILL)


def measure(hangdog, directory, seconds):
    """Records the desktop for so long and gives what was measured."""
    trace = directory / "desktop.hang"
    with desktop(directory) as (running, absent):
        words = [hangdog, "record", "--for", f"{seconds}s", "-o", str(trace)]
        begin = time.monotonic()
        process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        cpu_s, peak = recorders.wait(process, "desktop")
        wall_s = time.monotonic() - begin
    info = recorders.Hangdog(hangdog, "stacks").info(trace)
    rows = json.loads(
        subprocess.run(
            [hangdog, "info", "--json", str(trace)], capture_output=True, text=True, check=True
        ).stdout
    )
    definitions = {table["name"]: table["rows"] for table in rows["definitions"]}
    return {
        "programs": running,
        "not_installed": absent,
        "trace": info,
        "definitions": definitions,
        "unwinding": rows["meta"].get("unwinding"),
        # Loading takes its part of what is over.
        "save_s": wall_s - info["duration_s"],
        "recorder_cpu_s": cpu_s,
        "peak_bytes": peak,
    }


def show(found):
    """Prints it."""
    trace = found["trace"]
    names = found["definitions"]
    print(
        f"\na desktop ({', '.join(found['programs'])}"
        + (f"; without {', '.join(found['not_installed'])}" if found["not_installed"] else "")
        + f") for {trace['duration_s']:.0f} s: {trace['events']:,} events, {trace['lost']:,} lost, "
        f"{trace['bytes'] / 1e6:.0f} MB, {names['stacks']:,} stacks, {names['frames']:,} frames, "
        f"{names['symbols']:,} names; saved in {found['save_s']:.2f} s, "
        f"own CPU {found['recorder_cpu_s']:.1f} s, {found['peak_bytes'] / 1e9:.2f} GB"
    )

