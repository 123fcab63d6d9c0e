"""The least that the cache needs: PostgreSQL with pgvector, time zones, and two apps."""

import json
import os

SECRET_KEY = "only-for-tests"
INSTALLED_APPS = ["django.contrib.postgres", "semcache"]
DATABASES = {"default": json.loads(os.environ["PROJECT_DATABASE"])}
USE_TZ = True
SEMCACHE_BUDGET_MS = 30_000  # a busy test machine must not turn hits into misses
