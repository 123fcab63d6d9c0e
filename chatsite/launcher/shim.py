"""Becomes another program after arranging what only the new process itself can arrange.

Run as a script (``python -I -S shim.py ...``), never imported by the product: between the launcher and every
child it binds the child's life to the launcher's, sets its priority and, for servers that refuse root, its
identity, and then execs the program under the same process id. Knows nothing of what it starts.

    shim.py PARENT_PID DEATH_SIGNAL NICE IDENTITY /PATH/OF/PROGRAM [ARGUMENT ...]

IDENTITY is one of: ``keep``; ``namespace`` (root maps itself to an ordinary user in a user namespace, so files
stay root's outside and the program sees an unprivileged user inside); ``nobody`` (where namespaces are blocked).
"""

import ctypes
import os
import pwd
import sys

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000
MAPPED_ID = 1000
EX_OSERR = 71


def _libc_call(name: str, *arguments: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def enter_user_namespace() -> None:
    """Map root to an ordinary user id inside a new user namespace (no privilege is left there after exec)."""
    uid, gid = os.getuid(), os.getgid()
    _libc_call("unshare", CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{MAPPED_ID} {uid} 1"),
        ("gid_map", f"{MAPPED_ID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def become_nobody() -> None:
    account = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


def end_with_parent(parent_pid: int, death_signal: int) -> None:
    """Ask the kernel to signal this process when the launcher dies.

    Must come after every change of identity, because those clear the request. The parent may have died
    before the request was made; then nobody waits for this program any more.
    """
    if sys.platform != "linux":
        return
    _libc_call("prctl", PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
    if os.getppid() != parent_pid:
        sys.exit(EX_OSERR)


def main(arguments: list[str]) -> None:
    parent_pid, death_signal, nice = (int(argument) for argument in arguments[:3])
    identity, program = arguments[3], arguments[4:]
    if nice:
        os.nice(nice)
    try:
        if identity == "namespace":
            enter_user_namespace()
        elif identity == "nobody":
            become_nobody()
        end_with_parent(parent_pid, death_signal)
        os.execv(program[0], program)
    except OSError as error:
        print(f"cannot start {program[0]}: {error}", file=sys.stderr)
        sys.exit(EX_OSERR)


if __name__ == "__main__":
    main(sys.argv[1:])
