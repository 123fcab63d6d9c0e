"""The celery application: worker and beat use it, tasks and their schedules live in each app's `tasks.py`."""

from __future__ import annotations

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import beat_init, worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatsite.settings")

app = Celery("chatsite")
app.set_default()  # for every thread: the web sends tasks too
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.on_after_finalize.connect
def _schedule(sender: Celery, **kwargs: Any) -> None:
    """Collects what the apps want to be done when; here, because their tasks need models."""
    from chatsite.accounts import tasks as accounts
    from chatsite.chat import tasks as chat
    from semcache import tasks as semcache

    sender.conf.beat_schedule = {
        **accounts.BEAT_SCHEDULE,
        **chat.BEAT_SCHEDULE,
        **semcache.BEAT_SCHEDULE,
    }


@worker_init.connect
@beat_init.connect
def _check_settings(**kwargs: Any) -> None:
    """A worker without its servers says so in clear lines and ends."""
    from chatsite.checks import needed_settings
    from chatsite.logs import catch_the_rest

    if errors := needed_settings():
        sys.exit("\n".join(str(error.msg) for error in errors))
    catch_the_rest()
