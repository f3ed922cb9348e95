"""Loaded by pytest before Django reads its settings: tests write to a folder of their own."""

import atexit
import os
import shutil
import tempfile

from hypothesis import HealthCheck, settings

if "GAGAR_DATA_DIR" not in os.environ:
    os.environ["GAGAR_DATA_DIR"] = tempfile.mkdtemp(prefix="gagar-tests-")
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers inherit the folder; its maker removes it
        atexit.register(shutil.rmtree, os.environ["GAGAR_DATA_DIR"], ignore_errors=True)
os.environ.setdefault("CELERY_BROKER_URL", "memory://")
# Threads of a BLAS that wait for each other on a busy machine made a fit of 5 ms take 350.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("GAGAR_LOG_LEVEL", "WARNING")
# The synchronous Playwright API keeps an event loop running in the main thread, which Django would refuse.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
# A loaded machine is no reason to fail: our examples are small, and no test is timed.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
