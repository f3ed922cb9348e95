"""HTTP to Django; the job's socket by token, browsers' sockets by session and matching Origin: two routes."""

import os
import sys

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gagar_web.settings")
django = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402  (rows exist only once Django is set up)
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402

from gagar_web import urls  # noqa: E402, F401  (takes over a second: at the start, not at the first request)
from gagar_web.body_guard import BodyGuard  # noqa: E402
from gagar_web.health import Health  # noqa: E402
from training_bridge import routing  # noqa: E402

browsers = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(routing.browser_routes)))
websockets = URLRouter([*routing.job_routes, routing.everything_else(browsers)])
# The loop lets go of the interpreter at every select, and by Python's default a busy thread gives it back 5 ms later.
# With this a step of 1,568 groups is in the job's buffer a sixth sooner.
sys.setswitchinterval(0.0005)
application = ProtocolTypeRouter({"http": Health(BodyGuard(django)), "websocket": websockets})
