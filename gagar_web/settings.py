"""One settings file: embedded by default, scaled out by environment variables only (README lists them)."""

from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from gagar_web.env import env_bool, env_int, env_list, env_secret, env_str

BASE_DIR = Path(__file__).resolve().parent.parent
GAGAR_DATA_DIR = Path(env_str("GAGAR_DATA_DIR", str(BASE_DIR / "var"))).resolve()
GAGAR_DATA_DIR.mkdir(parents=True, exist_ok=True)

DEBUG = env_bool("GAGAR_DEBUG", False)
SECRET_KEY = env_secret("GAGAR_SECRET_KEY", GAGAR_DATA_DIR / "secret_key")
ALLOWED_HOSTS = env_list("GAGAR_ALLOWED_HOSTS", "127.0.0.1,localhost")
CSRF_TRUSTED_ORIGINS = env_list("GAGAR_TRUSTED_ORIGINS", "")
# TLS ends at a proxy in front; behind one, cookies travel over https only.
GAGAR_HTTPS = env_bool("GAGAR_HTTPS", False)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = GAGAR_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if GAGAR_HTTPS else None
SECURE_HSTS_SECONDS = 31_536_000 if GAGAR_HTTPS else 0

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "django_htmx",
    "heroicons",
    "csp",
    "axes",
    "grading",
    "training_bridge",
    "gagar_web",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "gagar_web.middleware.SayWhatWasRefused",
    "axes.middleware.AxesMiddleware",
]
ROOT_URLCONF = "gagar_web.urls"
ASGI_APPLICATION = "gagar_web.asgi.application"
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
                "grading.review.pages.everywhere.queue_count",
                "training_bridge.monitor.everywhere.alert_count",
            ],
        },
    }
]

# ---- rows ----
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False

_SQLITE = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": GAGAR_DATA_DIR / "gagar.sqlite3",
    "OPTIONS": {
        "timeout": 20,
        # DEFERRED upgrades its lock in mid-transaction and fails at once: 589 of 640 (stack.md 3).
        "transaction_mode": "IMMEDIATE",
        # FULL: a delivery that was sent must survive a power cut.
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA mmap_size=134217728;"
        " PRAGMA journal_size_limit=67108864; PRAGMA cache_size=-16000;",
    },
    "TEST": {"NAME": GAGAR_DATA_DIR / "test.sqlite3"},
}


def _database(url: str) -> dict:
    if not url:
        return _SQLITE
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured(f"DATABASE_URL has scheme {parts.scheme!r}, expected postgresql://user@host/name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "OPTIONS": {"pool": {"min_size": 2, "max_size": env_int("GAGAR_DB_POOL", 8, least=2), "timeout": 10}},
    }


DATABASES = {"default": _database(env_str("DATABASE_URL", ""))}

# ---- bodies ----
GAGAR_BODIES_URL = env_str("GAGAR_BODIES_URL", str(GAGAR_DATA_DIR / "bodies"))


def _bodies(url: str) -> dict:
    if url.startswith("s3://"):
        parts = urlsplit(url)
        options = {"bucket_name": parts.netloc, "location": parts.path.strip("/")}
        return {"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": options}
    return {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": url}}


STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "bodies": _bodies(GAGAR_BODIES_URL),
}

# ---- the channel layer wakes, it never carries data ----
REDIS_URL = env_str("REDIS_URL", "")
GAGAR_RELAY = env_str("GAGAR_RELAY", "")  # set by `serve` for its own children
if REDIS_URL:
    _LAYER = {"BACKEND": "gagar_web.redis_layer.PatientRedisChannelLayer"}
    # A listener asks for 5 s at a time, which is also the library's own patience: on a busy machine a quiet Redis
    # looked gone. Twice that without an answer is one that hangs.
    _host = {"address": REDIS_URL, "socket_timeout": 10, "socket_connect_timeout": 2}
    _LAYER["CONFIG"] = {"hosts": [_host], "capacity": 2000}
elif GAGAR_RELAY:
    _LAYER = {"BACKEND": "gagar_web.relay.RelayClientLayer", "CONFIG": {"address": GAGAR_RELAY}}
else:
    _LAYER = {"BACKEND": "gagar_web.relay.ThreadSafeInMemoryChannelLayer", "CONFIG": {"capacity": 2000}}
CHANNEL_LAYERS = {"default": _LAYER}

# ---- Celery: a message is a wake-up, rows are the truth ----
CELERY_BROKER_URL = env_str("CELERY_BROKER_URL", REDIS_URL or "files://localhost")
if CELERY_BROKER_URL.startswith("files"):
    _queue = GAGAR_DATA_DIR / "queue"
    for _folder in ("messages", "control"):
        (_queue / _folder).mkdir(parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_queue / "messages"),
        "data_folder_out": str(_queue / "messages"),
        "control_folder": str(_queue / "control"),
        "polling_interval": 0.1,
    }
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BEAT_SCHEDULE_FILENAME = str(GAGAR_DATA_DIR / "beat")
CELERY_BEAT_SCHEDULE = {
    "grading-sweep": {"task": "grading.tasks.sweep", "schedule": 2.0, "options": {"expires": 10}},
    "notices": {"task": "grading.tasks.send_notices", "schedule": 5.0, "options": {"expires": 10}},
    "anchors": {"task": "grading.tasks.regrade_anchors", "schedule": 600.0, "options": {"expires": 500}},
    "bodies-sweep": {"task": "grading.tasks.sweep_bodies", "schedule": 3600.0, "options": {"expires": 600}},
    "sandbox-reaper": {"task": "grading.tasks.reap_sandboxes", "schedule": 60.0, "options": {"expires": 50}},
    "alerts": {"task": "training_bridge.tasks.watch", "schedule": 5.0, "options": {"expires": 10}},
    "alert-calls": {"task": "training_bridge.tasks.send_alerts", "schedule": 5.0, "options": {"expires": 10}},
    "delivery-sweep": {"task": "training_bridge.tasks.sweep", "schedule": 2.0, "options": {"expires": 10}},
}

# ---- people and machines ----
AUTH_USER_MODEL = "grading.User"
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "runs"
LOGOUT_REDIRECT_URL = "login"
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = 0.25
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "errors/429.html"
AXES_HTTP_RESPONSE_CODE = 429
CSRF_FAILURE_VIEW = "gagar_web.failures.no_csrf_token"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "form-action": [SELF],
    }
}
X_FRAME_OPTIONS = "DENY"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["grading.ingest.auth.MachineTokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "grading.ingest.refusals.answer",
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Gagar",
    "DESCRIPTION": "Rollout groups in, verdicts reviewed, advantages out.",
    "VERSION": "1",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# ---- what the product itself reads ----
GAGAR_GRADER = env_str("GAGAR_GRADER", "static", allowed=("static", "single_pass", "agentic", "external"))
GAGAR_GRADER_MODEL = env_str("GAGAR_GRADER_MODEL", "")  # openai:NAME or anthropic:NAME
GAGAR_GRADER_URL = env_str("GAGAR_GRADER_URL", "")  # base URL of an endpoint of your own, e.g. http://host:8000/v1
GAGAR_GRADER_KEY = env_str("GAGAR_GRADER_KEY", "")
GAGAR_GRADER_CONCURRENCY = env_int("GAGAR_GRADER_CONCURRENCY", 8, least=1)  # gradings at once at one endpoint
GAGAR_HEARTBEAT_FILE = env_str("GAGAR_HEARTBEAT_FILE", "")  # what a health check of a process without a port reads
GAGAR_LEASE_S = env_int("GAGAR_LEASE_S", 120, least=1)
GAGAR_WEBHOOK_HOSTS = env_list("GAGAR_WEBHOOK_HOSTS", "")  # hosts a run's webhook may name; none by default
GAGAR_GIT_HOSTS = env_list("GAGAR_GIT_HOSTS", "")  # hosts a task's git URL may name; none by default

# ---- static files come out of installed wheels: no CDN, no Node ----
STATIC_URL = "/static/"
STATIC_ROOT = GAGAR_DATA_DIR / "static"
STATIC_ROOT.mkdir(exist_ok=True)
STATICFILES_DIRS = [("uplot", str(Path(find_spec("youplot").origin).parent / "vendor"))]
SERVESTATIC_USE_FINDERS = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env_str("GAGAR_LOG_LEVEL", "INFO")},
    "loggers": dict.fromkeys(("httpx", "httpx2", "axes"), {"level": "WARNING"}),
}
