"""Django settings, derived from `chatsite.env.WebConfig`. Nothing here reads the environment by itself."""

from __future__ import annotations

import secrets
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from chatsite.env import WebConfig
from inference.settings import read, secrets_in

BASE_DIR = Path(__file__).resolve().parent.parent
CONFIG = read(WebConfig)

DEBUG = CONFIG.debug
# Without a key of its own a process signs with one that dies with it: fine for one-off commands, and the
# system check refuses to serve with it.
SECRET_KEY = CONFIG.secret_key or secrets.token_urlsafe(48)
ALLOWED_HOSTS = [host.strip() for host in CONFIG.allowed_hosts.split(",") if host.strip()]
ORIGINS = [origin.strip() for origin in CONFIG.origins.split(",") if origin.strip()] or [
    f"{'https' if CONFIG.tls_cert else 'http'}://{host}:{CONFIG.port}"
    for host in ALLOWED_HOSTS
    if host != "*"
]

INSTALLED_APPS = [
    "chatsite.accounts",
    "chatsite.chat",
    "semcache",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "channels",
    "ninja",
    "csp",
    "django_celery_beat",
]

MIDDLEWARE = [  # where streams are served, some of these run on the loop: chatsite.handler
    "chatsite.middleware.proxy_headers",
    "chatsite.middleware.json_errors",
    "chatsite.middleware.site_headers",
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "chatsite.static_files.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

ROOT_URLCONF = "chatsite.urls"
ASGI_APPLICATION = "chatsite.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "django.template.context_processors.i18n",
            ]
        },
    }
]


def _database(url: str) -> dict[str, object]:
    """Django's DATABASES entry for a postgresql:// URL; `host` may be a query parameter naming a socket folder."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")) or "rill",
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.pop("host", unquote(parts.hostname or "")),
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            # One connection per database thread; a hung query must not stall every socket.
            "pool": {"min_size": 1, "max_size": CONFIG.db_threads, "timeout": 3},
            "options": "-c statement_timeout=5000 -c idle_in_transaction_session_timeout=10000",
            **query,
        },
    }


DATABASES = {"default": _database(CONFIG.database_url)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Small "look there" notices only; tokens never travel by the channel layer.
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [CONFIG.redis_url], "prefix": "rill"},
    }
}

CELERY_BROKER_URL = CONFIG.redis_url.replace("unix://", "redis+socket://").replace("?db=", "?virtual_host=")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False

SEMCACHE_BUDGET_MS = CONFIG.cache_budget_ms
SEMCACHE_MAX_ENTRIES = CONFIG.cache_max_entries
SEMCACHE_MAX_PER_OWNER = CONFIG.cache_max_per_owner
SEMCACHE_SHARED_PER_OWNER_PER_HOUR = CONFIG.cache_shared_per_owner_per_hour
SEMCACHE_ASKED_BY = "chatsite.chat.trial.as_asked"
SEMCACHE_ANSWERED_BY = "chatsite.chat.trial.answered"
SEMCACHE_RUN_BY = "chatsite.loop.run"

AUTH_USER_MODEL = "accounts.User"
LOGIN_URL = "/signin"
LOGIN_REDIRECT_URL = "/"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

LANGUAGE_CODE = CONFIG.language
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "chatsite" / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = CONFIG.time_zone

STATIC_URL = "/static/"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "chatsite.static_files.VersionedStorage"},
}
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = Path(CONFIG.data_dir) / "static"
WHITENOISE_USE_FINDERS = True

DATA_UPLOAD_MAX_MEMORY_SIZE = CONFIG.max_body_bytes
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_ENGINE = "chatsite.accounts.sessions"
SESSION_COOKIE_AGE = int(timedelta(days=14).total_seconds())  # the store ends idle ones before
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True  # the page's scripts find the token in the page
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = [origin for origin in ORIGINS if "://" in origin]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = bool(ORIGINS) and all(o.startswith("https://") for o in ORIGINS)
# A browser takes a cookie of such a name from this very host only, never from a neighbour under the same domain.
_HOST = "__Host-" if SESSION_COOKIE_SECURE else ""
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = f"{_HOST}sessionid", f"{_HOST}csrftoken"
OIDC_COOKIE_NAME, KNOWN_COOKIE_NAME = f"{_HOST}oidc", f"{_HOST}known"
SECURE_SSL_REDIRECT = CONFIG.https_only
SECURE_REDIRECT_EXEMPT = [r"^health/", r"^metrics$"]  # asked from this host, past the proxy
SECURE_HSTS_SECONDS = CONFIG.hsts_s
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = CONFIG.hsts_domain
if CONFIG.trust_proxy:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    USE_X_FORWARDED_HOST = True

# The chat page adds Trusted Types in its own view; the admin's jQuery would die under them.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "chatsite.logs.SafeFormatter",
            "secrets": secrets_in(CONFIG),
            "shows_all": CONFIG.debug,
        }
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": CONFIG.log_level},
    "loggers": {
        # Two lines for every task, some of which run every few seconds.
        "celery.worker.strategy": {"level": "WARNING"},
        "celery.app.trace": {"level": "WARNING"},
        "authlib": {"level": "WARNING"},  # at DEBUG it logs what proves that a browser set out here
    },
}
