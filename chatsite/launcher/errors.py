"""What can go wrong before the site is up.

LauncherError           a line for the operator, never a traceback; carries the exit status
├── AlreadyRunning      this data folder belongs to a living launcher
├── PortTaken           something else listens on the web port
├── Unsuitable          this machine or folder cannot carry an embedded server
└── StartFailed         a step ended or hung before it was ready
    └── Misconfigured   a process said that its settings are wrong (exit status 78)
"""

EX_UNAVAILABLE = 69
EX_CONFIG = 78


class LauncherError(Exception):
    code = "launcher_error"
    exit_status = 1


class AlreadyRunning(LauncherError):
    code = "already_running"


class PortTaken(LauncherError):
    code = "port_taken"


class Unsuitable(LauncherError):
    code = "unsuitable"
    exit_status = EX_CONFIG


class StartFailed(LauncherError):
    code = "start_failed"
    exit_status = EX_UNAVAILABLE


class Misconfigured(StartFailed):
    code = "misconfigured"
    exit_status = EX_CONFIG
