"""Commands that wait for servers, disks, other programs and quotas."""

import contextlib
import os
import pathlib
import random
import re

import commands_truth as measure
from commands_cases import Command, Part, by_cpu, command
from freezes.postgres import USER, Server
from ordinary_lives.work import history
from stage import CannotRun, Fault, accepts, free_port, need, output_of, wait_for

HERE = pathlib.Path(__file__).resolve().parent
DEBIAN_PYTHON = "/usr/bin/python3"
THROTTLE = pathlib.Path("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device")
CPU_GROUPS = pathlib.Path("/sys/fs/cgroup/cpu")
QUOTA_US, PERIOD_US, SHARES = 40_000, 100_000, 200_000
READ_BPS = 20 << 20
STEPS = 2500
WORDS = ["bash", "-c", "for ((i = 0; i < %d; i++)); do /usr/bin/basename src/part.c .c; done"]


@command("download")
def download(stage):
    """curl loads 6 MB from an application that thinks for 2 s, through nginx, which sends no more
    than 1 MB a second."""
    need("curl", "nginx", "gunicorn")
    folder = stage.directory / "web"
    folder.mkdir()
    port, behind = free_port(), free_port()
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;\n"
        "events {}\n"
        f"http {{ access_log {folder}/access.log; client_body_temp_path {folder}/body;\n"
        f"proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;\n"
        f"uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;\n"
        f"server {{ listen 127.0.0.1:{port};\n"
        f"location / {{ limit_rate 1m; proxy_buffers 64 128k; proxy_busy_buffers_size 7m;\n"
        f"proxy_pass http://127.0.0.1:{behind}; }} }} }}\n"
    )
    folder.chmod(0o755)
    words = ["gunicorn", "--workers", "1", "--bind", f"127.0.0.1:{behind}"]
    words += ["--pythonpath", HERE / "programs", "--worker-tmp-dir", stage.directory]
    stage.start([*words, "cmd_slow_wsgi:application"])
    wait_for("gunicorn", lambda: accepts(behind))
    stage.start(["nginx", "-p", folder, "-c", folder / "nginx.conf"])
    wait_for("nginx", lambda: accepts(port))

    def measured(command):
        used, said = measure.run(command)
        first_byte_s, total_s = map(float, said.split())
        return used.wall_s, [first_byte_s / used.wall_s, (total_s - first_byte_s) / used.wall_s]

    told = "%{time_starttransfer} %{time_total}"
    url = f"http://127.0.0.1:{port}/"
    return Command(
        stage,
        ["curl", "-s", "-o", "/dev/null", "-w", told, url],
        parts=(
            Part("the application thinks", r"^gunicorn", "timer"),
            Part("nginx sends slowly", r"^nginx", "timer"),
        ),
        measured=measured,
        witness="curl: time_starttransfer and time_total",
    )


@command("git-repack")
def git_repack(stage):
    """A history of 6,000 commits is packed anew, by one thread."""
    need("git")
    tree = history(stage.directory, commits=6000, files=60)
    pack = ["-c", "pack.threads=1", "repack", "-adfq", "--window=150", "--depth=50"]
    return Command(
        stage,
        ["git", *pack],
        parts=(Part("packing", r"^git", "run"),),
        measured=by_cpu,
        witness="rusage: CPU time of both processes, one of which works at a time",
        cwd=tree,
    )


def slow_disk(stage):
    """A file system on a loop device that is read no faster than READ_BPS. Gives the folder, and
    what makes it forget what was read."""
    need("losetup", "mkfs.ext4", "mount")
    if os.geteuid() != 0 or not THROTTLE.exists():
        raise CannotRun("no root, or no blkio control group of version 1")
    image, folder = stage.directory / "image", stage.directory / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(256 << 20)
    output_of(["mkfs.ext4", "-q", "-F", image])
    device = pathlib.Path(output_of(["losetup", "-f", "--show", image]).strip())
    stage.callback(output_of, ["losetup", "-d", device])
    numbers = pathlib.Path(f"/sys/class/block/{device.name}/dev").read_text().strip()

    def limit(rate):
        with contextlib.suppress(OSError):
            THROTTLE.write_text(f"{numbers} {rate}")

    def unmount():
        if folder.is_mount():
            output_of(["umount", folder])

    def forget():
        unmount()
        output_of(["mount", device, folder])

    stage.callback(limit, 0)
    stage.callback(unmount)
    forget()
    return folder, forget, lambda: limit(READ_BPS)


@command("sort-slow-disk")
def sort_slow_disk(stage):
    """sort reads a file of 60 MB from a disk that gives 20 MB a second, and sorts it."""
    need("sort")
    folder, forget, slow_down = slow_disk(stage)
    draw = random.Random(1)
    with (folder / "lines").open("w") as file:
        for _ in range(60):
            file.write("".join(f"{draw.randbytes(24).hex()}\n" for _ in range((1 << 20) // 49)))
    forget()
    slow_down()
    stage.environment["LC_ALL"] = "C"
    lines = folder / "lines"
    return Command(
        stage,
        ["sort", "-S", "400M", "--parallel=1", "-k", "1.2,1.40", "-o", "/dev/null", lines],
        parts=(Part("sorting", r"^sort$", "run"), Part("reading", r"^sort$", "disk")),
        measured=by_cpu,
        witness="rusage: CPU time; the rest is the disk, which gives 20 MB a second",
        prepare=forget,
    )


@command("shell-loop")
def shell_loop(stage):
    """A loop in bash starts basename 2,500 times."""
    need("bash", "basename")
    script = WORDS[2] % STEPS
    told = f"{script} > /dev/null; read -r ran _ < /proc/$$/schedstat; echo $ran"

    def measured(command):
        # The same, and bash tells at its end for how long it ran.
        asked = Command(stage, ["bash", "-c", told], command.parts, None, "")
        used, said = measure.run(asked)
        share = int(said) / 1e9 / used.wall_s
        return used.wall_s, [1 - share, share]

    return Command(
        stage,
        ["bash", "-c", f"{script} > /dev/null"],
        parts=(
            Part("the programs that it starts", r"^basename$", "any"),
            Part("bash itself", r"^bash$", "run"),
        ),
        measured=measured,
        witness="/proc/PID/schedstat: how long bash ran; else it waits for the programs",
    )


@command("tar-xz")
def tar_xz(stage):
    """tar packs a folder through xz."""
    need("tar", "xz")
    folder = stage.directory / "tree"
    folder.mkdir()
    draw = random.Random(1)
    words = [draw.randbytes(draw.randrange(2, 9)).hex() for _ in range(3000)]
    for number in range(120):
        (folder / f"file{number}").write_text(
            " ".join(words[min(int(draw.expovariate(0.002)), 2999)] for _ in range(4000))
        )
    stage.environment["XZ_OPT"] = "-T1 -6"

    def measured(command):
        wall_s, by_name = measure.cpu_by_process(command)
        return wall_s, [by_name["xz"] / wall_s]

    return Command(
        stage,
        ["tar", "-cJf", stage.directory / "tree.tar.xz", "tree"],
        parts=(Part("compressing", r"^xz$", "run"),),
        measured=measured,
        witness="/proc/PID/schedstat of xz",
    )


@command("cpu-quota")
def cpu_quota(stage):
    """gzip compresses a file within a control group that may use 40 % of a CPU."""
    need("gzip")
    group = CPU_GROUPS / f"hangdog-real-{os.getpid()}"
    if os.geteuid() != 0 or not (CPU_GROUPS / "cpu.cfs_quota_us").exists():
        raise CannotRun("no root, or no cpu control group of version 1")
    group.mkdir()
    # Its processes have ended by then.
    stage.callback(lambda: wait_for("an empty control group", lambda: _removed(group), 10))
    (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
    (group / "cpu.cfs_quota_us").write_text(str(QUOTA_US))
    # As the programs of a stage, it goes before what else runs here.
    (group / "cpu.shares").write_text(str(SHARES))
    draw = random.Random(1)
    numbers = stage.directory / "numbers.txt"
    numbers.write_text("".join(f"{draw.randrange(10**6)} " for _ in range(2_600_000)))

    def throttled_s():
        text = (group / "cpu.stat").read_text(encoding="ascii")
        return int(re.search(r"throttled_time (\d+)", text)[1]) / 1e9

    def measured(command):
        before = throttled_s()
        used, _ = measure.run(command)
        share = (throttled_s() - before) / used.wall_s
        if abs(share + used.cpu_share - 1) > 0.08:
            raise Fault(f"cpu.stat: {share:.0%} throttled, rusage: {used.cpu_share:.0%} run")
        # It never sleeps: what it reads and writes is in memory.
        return used.wall_s, [used.cpu_share, 1 - used.cpu_share]

    within = HERE / "programs" / "cmd_within.py"
    return Command(
        stage,
        [DEBIAN_PYTHON, within, group, "gzip", "-6", "-k", "-f", numbers],
        parts=(
            Part("compressing", r"^gzip$", "run"),
            Part("throttled", r"^gzip$", "runnable"),
        ),
        measured=measured,
        witness="rusage: CPU time; cpu.stat: throttled_time is the rest, to within 8 %",
    )


def _removed(group):
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


@command("psql")
def psql(stage):
    """psql asks PostgreSQL to sleep for 2 s, and then for a join that takes some seconds."""
    # The join is a nested loop, by one process.
    server = Server(
        stage, ("max_parallel_workers_per_gather=0", "jit=off", "enable_hashjoin=off")
    )
    server.ask("CREATE TABLE numbers AS SELECT n FROM generate_series(1, 5500) n")
    server.ask("VACUUM ANALYZE numbers")
    join = "SELECT count(*) FROM numbers a, numbers b WHERE (a.n * b.n) % 7 = 1"
    asked = ["psql", "-h", server.folder, "-U", USER, "-AtqX"]
    questions = ["-c", "SELECT pg_sleep(2)", "-c", join]

    def measured(command):
        timed = Command(
            stage, [*asked, "-c", r"\timing", *questions], command.parts, None, ""
        )
        used, said = measure.run(timed)
        slept, joined = (float(ms) / 1000 for ms in re.findall(r"Time: ([\d.]+) ms", said))
        return used.wall_s, [slept / used.wall_s, joined / used.wall_s]

    return Command(
        stage,
        [*asked, *questions],
        parts=(
            Part("pg_sleep", r"^postgres", "timer"),
            Part("the join", r"^postgres", "run"),
        ),
        measured=measured,
        witness=r"psql: \timing of both statements",
    )
