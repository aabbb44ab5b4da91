"""Ordinary other life on a machine, beside which a flight recorder runs: a desktop in use, a web
server under steady load, a compile. Each goes on until its stage is closed."""

import pathlib
import random
import sys

from stage import accepts, free_port, need, wait_for

HERE = pathlib.Path(__file__).resolve().parent
TYPIST = HERE / "programs" / "typist.py"
LOAD = HERE / "programs" / "steady_load.py"


def desktop(stage):
    """Somebody types in an editor and opens and closes a terminal."""
    need("mousepad", "openbox", "xterm", "xdotool")
    stage.display()
    stage.session_bus()
    stage.start(["openbox"])
    text = stage.directory / "letter.txt"
    text.write_text("Dear all,\n")
    stage.start(["mousepad", "--disable-server", text])
    stage.window("letter.txt")
    stage.start([sys.executable, TYPIST])


def web_server(stage):
    """A web server that answers a hundred requests a second."""
    need("nginx")
    folder = stage.directory / "nginx"
    (folder / "site").mkdir(parents=True)
    (folder / "site" / "index.html").write_text("<p>welcome</p>" * 200)
    port = free_port()
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 2;\n"
        "events {}\n"
        f"http {{ access_log {folder}/access.log; client_body_temp_path {folder}/body;\n"
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n"
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port}; root {folder}/site; }} }}\n"
    )
    # Its workers change to a user that may not read here otherwise.
    for path in (folder, folder / "site"):
        path.chmod(0o755)
    stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
    wait_for("nginx", lambda: accepts(port))
    stage.start([sys.executable, LOAD, str(port)])


def compilation(stage):
    """A compiler that is started again and again, for one file after the other."""
    need("make", "cc")
    folder = stage.directory / "tree"
    folder.mkdir()
    draw = random.Random(1)
    for n in range(40):
        body = "".join(
            f"int f{n}_{k}(int a) {{ for (int i = 0; i < a; i++) a ^= a * {draw.randrange(999)}"
            f" + i; return a; }}\n"
            for k in range(150)
        )
        (folder / f"part{n}.c").write_text(body)
    (folder / "Makefile").write_text(
        "CFLAGS = -O2\n"
        "again:\n\t@rm -f *.o\n\t@$(MAKE) -s all\n\t@$(MAKE) -s again\n"
        "all: $(patsubst %.c,%.o,$(wildcard *.c))\n"
    )
    stage.start(["make", "-s", "-C", folder, "again"])


LIVES = {"desktop": desktop, "web server": web_server, "compile": compilation}


def of_case(number):
    """The life beside which a case is recorded: they take turns."""
    return list(LIVES)[number % len(LIVES)]
