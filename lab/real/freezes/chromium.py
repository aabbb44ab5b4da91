"""Chromium: what a page's script does to the page's thread."""

import os
import pathlib
import time

from case import Root, Truth, freeze
from processes import of_session
from stage import Fault, need
from watcher import Watcher

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


def renderers_of(stage, browser):
    """The browser's processes that may have a page. The files in which it tells the names of
    functions go with the stage."""
    words = of_session(os.getsid(browser.pid))
    for pid, _ in words:
        # Not only renderers write one, and the browser leaves them behind.
        stage.callback(pathlib.Path(f"/tmp/perf-{pid}.map").unlink, missing_ok=True)
    return [pid for pid, command in words if "--type=renderer" in command]


@freeze("toolkits", "chromium-script")
def script(stage):
    """A click on a page in Chromium runs a script that keeps the page's thread busy."""
    need("chromium")
    stage.display()
    page = stage.directory / "page.html"
    page.write_text(PAGE % (stage.freeze_s * 1000))
    profile = f"--user-data-dir={stage.directory}/browser"
    browser = stage.program(["chromium", *OPTIONS, profile, page.as_uri()], cwd=stage.directory)
    window = stage.window("ready")
    time.sleep(2)
    # One of them has the page; which one is seen by what it runs.
    renderers = renderers_of(stage, browser)
    stage.xdotool("mousemove", "--window", window, "500", "500")
    watchers = [Watcher(pid) for pid in renderers]
    for _ in range(4):
        stage.xdotool("click", "1")
        time.sleep(0.3)
    # What a user does, and what is not answered.
    stage.xdotool("click", "1")
    stage.hold()
    stage.window("clicked 5")
    turns = [(turn, watcher.tid) for watcher in watchers for turn in watcher.turns]
    turn, renderer = max(turns, key=lambda pair: pair[0].cpu_s)
    if turn.cpu_s < stage.freeze_s / 2:
        raise Fault(f"no renderer ran for {stage.freeze_s / 2} s")
    if turn.wall_s < 0.9 * stage.freeze_s:
        raise Fault(f"the renderer came back after {turn.wall_s:.1f} s")
    return Truth(
        text="LongRunning chromium renderer, in the script's busy",
        victims=(renderer,),
        roots=(Root(renderer, ("LongRunning",)),),
        frozen=turn.span,
        witness=f"/proc: renderer {renderer}, {turn.cpu_s:.1f} of {turn.wall_s:.1f} s on the CPU",
        function=r"\bbusy$",
        ran=((r"\bbusy$", 0.8),),
    )
