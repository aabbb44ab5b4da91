"""Browsers and a Java service."""

import re
import time

from freezes.chromium import OPTIONS
from ordinary_lives.register import ordinary, slowest_turn, title_after, until_turns
from ordinary_lives.tools import program
from stage import need, output_of, wait_for
from watcher import until_idle

IDLE_PAGE = """<!doctype html><title>ready</title>
<body style="height: 100vh; margin: 0" onclick="document.title = 'clicked'">
<h1>Some news</h1><p>They do not change.</p>"""

# A page of many lines that scrolls, with a box that turns. Once a second the title tells the
# longest time between two frames of the last 9 seconds.
MOVING_PAGE = """<!doctype html><title>ready</title>
<style>@keyframes turn { to { transform: rotate(1turn); } }
#box { position: fixed; left: 300px; top: 200px; width: 80px; height: 80px;
       background: teal; animation: turn 2s linear infinite; }</style>
<div id="box"></div><script>
for (let n = 0; n < 500; n++) {
  const line = document.createElement("p");
  line.textContent = "line " + n;
  document.body.append(line);
}
let last = performance.now(), told = last, frames = [];
function frame(now) {
  frames.push([now, now - last]);
  last = now;
  window.scrollTo(0, (now / 5) % 8000);
  if (now - told > 1000) {
    told = now;
    frames = frames.filter(one => one[0] > now - 9000);
    document.title = "slowest " + Math.max(...frames.map(one => one[1])).toFixed(1) + " of "
      + frames.length;
  }
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
</script>"""


def browse(stage, text, title):
    """Opens a page in Chromium; gives the browser and its window."""
    need("chromium")
    stage.display()
    page = stage.directory / "page.html"
    page.write_text(text)
    profile = f"--user-data-dir={stage.directory}/browser"
    browser = stage.start(["chromium", *OPTIONS, profile, page.as_uri()], cwd=stage.directory)
    return browser, stage.window(title)


@ordinary("idle browser")
def idle_browser(stage):
    """Chromium shows a page on which nothing moves."""
    browser, window = browse(stage, IDLE_PAGE, "ready")
    stage.xdotool("mousemove", "--window", window, "500", "500")
    until_idle(browser.pid, 4.0)
    return title_after(stage, window, ("click", "1"), "clicked")


@ordinary("moving page")
def moving_page(stage):
    """Chromium shows a page that scrolls, with a box that turns."""
    _, window = browse(stage, MOVING_PAGE, "slowest")
    # What starting up took is forgotten after 9 seconds.
    time.sleep(6)

    def look(_begin_ns, _end_ns):
        name = stage.xdotool("getwindowname", window)
        slowest, frames = re.search(r"slowest ([\d.]+) of (\d+)", name).groups()
        return float(slowest) / 1000, f"the slowest of {frames} frames took {slowest} ms"

    return look


@ordinary("idle Java service")
def idle_java(stage):
    """A Java program with pools of idle threads and a heartbeat once a second."""
    need("java", "javac")
    output_of(["javac", "-d", stage.directory, program("OrdIdle.java")])
    log = stage.directory / "beats.log"
    with log.open("wb") as beats:
        stage.start(["java", "-cp", stage.directory, "OrdIdle"], stdout=beats)
    until_turns(log, 3)
    return slowest_turn(log, "heartbeats after they were due")
