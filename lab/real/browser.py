"""Chromium: a click on a page runs a script that keeps the page's thread busy."""

import pathlib
import time

from judge import Truth
from stage import Fault, need, of_session
from watcher import Watcher

NAME = "chromium"
FREEZE_S = 3.0
# Clicks are ordinary up to the fourth, and again from then on.
PAGE = """<!doctype html><title>ready</title>
<body style="height: 100vh; margin: 0" onclick="work()"><script>
let clicks = 0;
function busy(ms) {
  const end = performance.now() + ms;
  let n = 0;
  while (performance.now() < end) n += Math.sqrt(n);
  return n;
}
function work() {
  clicks += 1;
  busy(clicks == 4 ? %d : 5);
  document.title = "clicked " + clicks;
}
</script>"""
OPTIONS = (
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--password-store=basic",
    # Tells the names of functions made at run time.
    "--js-flags=--perf-basic-prof",
)


def play(stage):
    """Freezes the page; gives the truth."""
    need("chromium")
    stage.display()
    page = stage.directory / "page.html"
    page.write_text(PAGE % (FREEZE_S * 1000))
    profile = f"--user-data-dir={stage.directory}/browser"
    browser = stage.start(["chromium", *OPTIONS, profile, page.as_uri()], cwd=stage.directory)
    window = stage.window("ready")
    time.sleep(2)
    # One of them has the page; which one is seen by what it runs.
    renderers = [pid for pid, words in of_session(browser.pid) if "--type=renderer" in words]
    for pid in renderers:
        # Where the names are told; the browser leaves the files behind.
        stage.callback(pathlib.Path(f"/tmp/perf-{pid}.map").unlink, missing_ok=True)
    stage.xdotool("mousemove", "--window", window, "500", "500")
    with stage.recording():
        watchers = [Watcher(pid) for pid in renderers]
        for _ in range(4):
            stage.xdotool("click", "1")
            time.sleep(0.3)
        # What a user does, and what is not answered.
        stage.xdotool("click", "1")
        time.sleep(FREEZE_S)
        stage.window("clicked 5")
    turns = [(turn, watcher.tid) for watcher in watchers for turn in watcher.turns]
    turn, renderer = max(turns, key=lambda pair: pair[0].cpu_s)
    if turn.cpu_s < FREEZE_S / 2:
        raise Fault(f"no renderer ran for {FREEZE_S / 2} s")
    return Truth(
        text="LongRunning chromium renderer, in the script's busy",
        victim=renderer,
        problem_class="LongRunning",
        root=renderer,
        root_class="LongRunning",
        frozen=turn.span,
        witness=f"/proc: renderer {renderer}, {turn.cpu_s:.1f} of {turn.wall_s:.1f} s on the CPU",
        ran=((r"\bbusy$", 0.8),),
    )
