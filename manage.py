#!/usr/bin/env python
"""Django's command line for this project. Beside a running `make run` it joins that site's servers."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")
    if not os.environ.get("DATABASE_URL"):
        from chatsite.launcher.joining import joining_environment

        os.environ.update(joining_environment(os.environ))
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
