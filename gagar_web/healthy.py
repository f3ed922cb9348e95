"""A container's health check, standard library only: `python -I gagar_web/healthy.py` ends with 0 or says why not.

The web answers /healthz; what has no port touches GAGAR_HEARTBEAT_FILE while it works.
"""

import os
import sys
import time
from http.client import HTTPConnection, HTTPException

FRESH_S = 60
ANSWER_S = 8


def why_not(environ) -> str:
    """Returns: what is wrong; "" if nothing is."""
    if kept_at := environ.get("GAGAR_HEARTBEAT_FILE"):
        try:
            age_s = time.time() - os.stat(kept_at).st_mtime
        except OSError as missing:
            return f"no heartbeat yet: {missing}"
        return "" if age_s < FRESH_S else f"the last heartbeat is {age_s:.0f} s old, expected less than {FRESH_S} s"
    port = int(environ.get("UVICORN_PORT") or 8000)
    try:
        asked = HTTPConnection("127.0.0.1", port, timeout=ANSWER_S)
        asked.request("GET", "/healthz")
        answer = asked.getresponse()
        return "" if answer.status == 200 else f"/healthz answers {answer.status}: {answer.read(200).decode()}"
    except (OSError, HTTPException) as silent:
        return f"nothing answers on port {port}: {silent}"


if __name__ == "__main__":
    sys.exit(why_not(os.environ) or 0)
