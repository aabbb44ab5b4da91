"""Agents that keep a user's secrets: they are asked by other programs, and ask the user."""

from case import Root, Truth, freeze
from freezes.stopped import ask_stopped
from processes import of_session
from stage import Fault, need, now_ns, output_of, wait_for

USER = "Lab <lab@example.org>"


@freeze("desktop", "ssh-agent-stopped")
def ssh_agent(stage):
    """ssh-add lists the keys of an agent that is stopped."""
    need("ssh-agent", "ssh-add", "ssh-keygen")
    path = stage.directory / "agent"
    agent = stage.start(["ssh-agent", "-D", "-a", path])
    wait_for("ssh-agent", path.exists)
    stage.environment["SSH_AUTH_SOCK"] = str(path)
    key = stage.directory / "key"
    output_of(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], env=stage.environment)
    output_of(["ssh-add", "-q", key], env=stage.environment)
    return ask_stopped(
        stage, ["ssh-add", "-l"], agent.pid, "LongWait; root ssh-agent, stopped"
    )


@freeze("desktop", "gpg-asks-for-passphrase")
def passphrase(stage):
    """gpg signs a file, for which gpg-agent has pinentry ask for the passphrase in a window that
    nobody looks at."""
    need("gpg", "gpg-agent", "pinentry-gtk-2")
    stage.display()
    # Else pinentry starts one that nobody ends.
    stage.session_bus()
    home = stage.directory / "gnupg"
    home.mkdir(mode=0o700)
    stage.environment["GNUPGHOME"] = str(home)
    (home / "gpg-agent.conf").write_text(
        "pinentry-program /usr/bin/pinentry-gtk-2\nno-grab\nno-allow-external-cache\n"
    )
    # It stays in its session, so that it ends with the stage.
    leader = stage.start(["gpg-agent", "--daemon", "--no-detach", "--allow-loopback-pinentry"])
    wait_for("gpg-agent", (home / "S.gpg-agent").exists)
    output_of(
        ["gpg", "--batch", "--pinentry-mode", "loopback", "--passphrase", "secret",
         "--quick-gen-key", USER, "ed25519", "sign", "never"],
        env=stage.environment,
    )
    output_of(["gpg-connect-agent", "reloadagent", "/bye"], env=stage.environment)
    agent, = [pid for pid, words in of_session(leader.pid) if words.startswith("gpg-agent")]
    letter = stage.directory / "letter.txt"
    letter.write_text("Dear all,\n")
    stage.ordinary()
    signer = stage.program(["gpg", "--detach-sign", letter])
    begin = now_ns()

    def look():
        window = stage.window(".")
        asking = [pid for pid, words in of_session(leader.pid) if words.startswith("pinentry")]
        return window, asking, signer.runs()

    window, asking, runs = stage.hold(look)
    stage.xdotool("type", "secret")
    stage.xdotool("key", "Return")
    end = signer.ended()
    if len(asking) != 1 or not runs:
        raise Fault(f"{len(asking)} programs ask for the passphrase, gpg runs: {runs}")
    if not letter.with_suffix(".txt.sig").exists():
        raise Fault("gpg has signed nothing")
    return Truth(
        text="LongWait; root pinentry, which waits for a person",
        victims=(signer.pid, agent),
        roots=(Root(asking[0], ("LongWait",)),),
        outside=True,
        frozen=(begin, end),
        witness=f"xdotool: window {window} is open; ps: pinentry is {asking[0]}; gpg signed when "
        "the passphrase was typed",
    )
