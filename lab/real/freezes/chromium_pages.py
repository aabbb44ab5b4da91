"""Chromium: pages that freeze themselves in other ways than by a plain loop."""

import time

from case import Root, Truth, freeze
from freezes.chromium import OPTIONS, renderers_of
from freezes.panels import (
    LEAST_SHARE,
    MARGIN_S,
    PYTHON,
    cpu_ns,
    must_sleep,
    start_program,
    state_of,
)
from freezes.runtimes import must_last
from stage import Fault, accepts, free_port, need, now_ns
from watcher import until_idle

# A click is ordinary up to the fourth, and again from then on. The title tells of the longest: when
# it began and ended, in ms of the wall clock.
PAGE = """<!doctype html><title>ready</title>
<body style="height: 100vh; margin: 0; font: 10px sans-serif" onclick="clicked()"><script>
const wanted = %s;
const clock = () => performance.timeOrigin + performance.now();
let clicks = 0, longest = [0, 0];
function spin(ms) {
  const end = clock() + ms;
  while (clock() < end);
}
function clicked() {
  const begin = clock();
  clicks += 1;
  // Whoever has the page is told by that.
  spin(100);
  if (clicks == 4) work(wanted);
  const end = clock();
  if (end - begin > longest[1] - longest[0]) longest = [begin, end];
  document.title = "clicked " + clicks + " " + longest.map(Math.round).join(" ");
}
%s
</script>"""
# Reads a width after each change of one, so that all is laid out each time.
LAYOUT = """
for (let n = 0; n < 2000; n++) {
  const cell = document.createElement("span");
  cell.textContent = "cell " + n + " ";
  document.body.append(cell);
}
const cells = document.querySelectorAll("span");
function work(ms) { fitColumns(ms); }
function fitColumns(ms) {
  const end = performance.now() + ms;
  let n = 0;
  do {
    const cell = cells[n++ % cells.length];
    cell.style.paddingLeft = (n % 7) + "px";
    cell.dataset.width = cell.offsetWidth + document.body.scrollHeight;
  } while (performance.now() < end);
}
"""
# Asks a web service, and waits for the answer.
REQUEST = """
function work(ms) { loadReport(ms / 1000); }
function loadReport(seconds) {
  const request = new XMLHttpRequest();
  request.open("GET", "/report?seconds=" + seconds, false);
  request.send();
}
"""
# A text longer by one takes so many times as long.
REGEXP = """
const pattern = /^(a|aa)+$/;
function took(text) {
  const begin = performance.now();
  validateName(text);
  return performance.now() - begin;
}
function validateName(text) { return pattern.test(text); }
let length = 20;
while (took("a".repeat(length) + "!") < 50) length++;
function work(ms) {
  const text = "a".repeat(length) + "!";
  // The least of some, for others use the CPU too.
  let more = length, estimate = Math.min(...[1, 2, 3].map(() => took(text)));
  // Somewhat longer, for the estimate is rough.
  while (estimate < 1.15 * ms) { more++; estimate *= 1.618; }
  return validateName("a".repeat(more) + "!");
}
"""


def browse(stage, address):
    """Opens a page in a browser; gives the processes that might have the page."""
    need("chromium")
    stage.display()
    stage.session_bus()
    profile = f"--user-data-dir={stage.directory}/browser"
    # No process that waits for a page to come.
    spare = "--disable-features=SpareRendererForSitePerProcess"
    words = ["chromium", *OPTIONS, spare, profile, address]
    browser = stage.program(words, cwd=stage.directory)
    window = stage.window("^ready")
    until_idle(browser.pid, 1.0)
    renderers = renderers_of(stage, browser)
    for pid in renderers:
        until_idle(pid, 1.0)
    stage.xdotool("mousemove", "--window", window, "500", "500")
    return renderers


def wall_to_monotonic(ms):
    """A time of the wall clock, ms, by CLOCK_MONOTONIC, ns."""
    return int(ms * 1e6) - time.time_ns() + now_ns()


def busiest(renderers, before):
    """Which of them has used the most of the CPU since `before`, and how much, s."""
    used = {pid: (cpu_ns(pid) - before[pid]) / 1e9 for pid in renderers}
    return max(used.items(), key=lambda pair: pair[1])


def use(stage, renderers, look):
    """Clicks on the page, the fourth time for what takes long, and a fifth time, which is not
    answered. `look(pid)` is told which renderer has the page. Gives when it was frozen, what `look`
    saw of it, and which renderer used how much of the CPU then."""
    before = {pid: cpu_ns(pid) for pid in renderers}
    for number in range(1, 4):
        stage.xdotool("click", "1")
        stage.window(f"^clicked {number} ")
    renderer, _ = busiest(renderers, before)
    before = {pid: cpu_ns(pid) for pid in renderers}
    stage.xdotool("click", "1")
    time.sleep(0.3)
    stage.xdotool("click", "1")
    seen = stage.hold(lambda: look(renderer))
    title = stage.xdotool("getwindowname", stage.window("^clicked 5 "))
    begin, end = map(int, title.split()[2:4])
    return (wall_to_monotonic(begin), wall_to_monotonic(end)), seen, busiest(renderers, before)


def busy_page(stage, script, function, text):
    """Plays a page whose thread computes."""
    page = stage.directory / "page.html"
    page.write_text(PAGE % ((stage.freeze_s + MARGIN_S) * 1000, script))
    renderers = browse(stage, page.as_uri())
    frozen, _, (renderer, used_s) = use(stage, renderers, lambda _: None)
    took_s = (frozen[1] - frozen[0]) / 1e9
    if used_s < LEAST_SHARE * took_s:
        raise Fault(f"/proc: no renderer used more than {used_s:.1f} s of the CPU")
    return Truth(
        text=text,
        victims=(renderer,),
        roots=(Root(renderer, ("LongRunning",), thread=renderer),),
        frozen=must_last(stage, frozen),
        witness=f"/proc: renderer {renderer}, {used_s:.1f} s on the CPU; the page was frozen for "
        f"{took_s:.1f} s",
        function=function,
    )


@freeze("toolkits", "chromium-layout")
def layout(stage):
    """A script on a page in Chromium changes an element and reads the page's height by turns, so
    that the page is laid out anew each time."""
    return busy_page(
        stage, LAYOUT, r"\bfitColumns$", "LongRunning chromium renderer, in the script's fitColumns"
    )


@freeze("toolkits", "chromium-regexp")
def regexp(stage):
    """A script on a page in Chromium matches a text by a regular expression that backtracks."""
    # The pattern is a function of its own in the engine.
    return busy_page(
        stage,
        REGEXP,
        r"\bvalidateName$|RegExp|\(a\|aa\)",
        "LongRunning chromium renderer, in the script's validateName",
    )


@freeze("toolkits", "chromium-sync-request")
def sync_request(stage):
    """A script on a page in Chromium asks a web service synchronously (XMLHttpRequest); the service
    sleeps before it answers."""
    need(PYTHON)
    port = free_port()
    page = stage.directory / "page.html"
    page.write_text(PAGE % ((stage.freeze_s + MARGIN_S) * 1000, REQUEST))
    server = start_program(stage, "gtk_report_server.py", port, page, ready=lambda: accepts(port))
    renderers = browse(stage, f"http://127.0.0.1:{port}/")

    def look(renderer):
        return renderer, state_of(renderer), must_sleep(server.pid)

    frozen, (renderer, state, sleeper), _ = use(stage, renderers, look)
    if state != "S":
        raise Fault(f"/proc: the renderer is {state}")
    return Truth(
        text="LongWait of a renderer for a web service; root report_server, which sleeps",
        victims=(renderer,),
        roots=(Root(server.pid, ("LongWait",)),),
        frozen=frozen,
        witness=f"/proc: renderer {renderer} sleeps; the server's {sleeper}",
        function=r"\bslow_report\b",
    )
