"""MuPDF turns to a page of thousands of long curves, which it draws on its only thread."""

import random

from case import Root, Truth, freeze
from freezes.runtimes import must_last
from stage import need, now_ns
from watcher import Watcher, until_idle

# As many as take some 4.5 and 10 s on the reference machine.
CURVES, CURVES_LONG = 10_000, 22_000
SIDE = 600
AT_LEAST_S = 1.0


def pdf(*pages):
    """A document of pages, given by what is drawn on each."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    kids = []
    for drawn in pages:
        number = len(objects) + 1
        kids.append(b"%d 0 R" % number)
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents %d 0 R>>"
            % (SIDE, SIDE, number + 1),
            b"<</Length %d>>stream\n%b\nendstream" % (len(drawn), drawn),
        ]
    objects[1] = b"<</Type/Pages/Kids[%b]/Count %d>>" % (b" ".join(kids), len(kids))
    text, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(text))
        text += b"%d 0 obj%bendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return text + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (len(objects) + 1, table, len(objects) + 1, len(text))
    )


def curves(count):
    """Draws so many curves. A thousand different ones, again and again."""
    draw = random.Random(1)
    some = [
        b"%d %d m %d %d %d %d %d %d c S\n" % tuple(draw.randrange(SIDE) for _ in range(8))
        for _ in range(min(count, 1000))
    ]
    return b"0.1 w\n" + b"".join(some) * (count // len(some))


@freeze("toolkits", "mupdf-page")
def page(stage):
    """MuPDF turns to a page with very many curves, and draws it on its only thread."""
    need("mupdf")
    stage.display()
    document = stage.directory / "drawing.pdf"
    light = curves(100)
    many = CURVES if stage.freeze_s < 5 else CURVES_LONG
    document.write_bytes(pdf(light, light, light, curves(many)))
    viewer = stage.program(["mupdf", document])
    stage.window("drawing.pdf")
    until_idle(viewer.pid, 0.5)
    watcher = Watcher(viewer.pid)
    for _ in range(2):
        stage.xdotool("key", "Next")
        until_idle(viewer.pid, 0.5)
    begin = now_ns()
    stage.xdotool("key", "Next")
    stage.hold()
    turn = watcher.busiest(AT_LEAST_S)
    return Truth(
        text="LongRunning mupdf, which draws a page",
        victims=(viewer.pid,),
        roots=(Root(viewer.pid, ("LongRunning",)),),
        # The turn may have begun with a wait for the key.
        frozen=must_last(stage, (max(begin, turn.begin_ns), turn.end_ns)),
        witness=f"/proc: {turn.cpu_s:.1f} of {turn.wall_s:.1f} s on the CPU",
    )
