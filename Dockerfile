# One image for every role: setup, web, worker, grader, clock; compose.yaml says which command each runs.
# BASE is a Debian with python3.11 and its venv module. Nothing here needs BuildKit.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
# Of this stage only: neither stands in the image or its history.
ARG PIP_INDEX_URL
ARG PIP_NO_INDEX
RUN python3.11 -m venv /opt/gagar
# Wheels beside the lock (`pip download -d wheels …`) are taken first, where there are any; hashes hold in any case.
COPY requirements-image.lock wheel[s] /build/
RUN /opt/gagar/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --require-hashes \
        --only-binary :all: --find-links /build --requirement /build/requirements-image.lock \
    && /opt/gagar/bin/pip uninstall --quiet --yes pip setuptools
WORKDIR /srv/gagar
COPY manage.py ./
COPY gagar_web gagar_web/
COPY grading grading/
COPY training_bridge training_bridge/
COPY templates templates/
# The root filesystem may be read-only: what Python would write at a first start is there already.
RUN /opt/gagar/bin/python -m compileall -q .

FROM ${BASE}
# Graders read repositories with git; a task's git URL may be one of ssh; bubblewrap runs checks where the host lets it.
RUN if ! command -v git || ! command -v ssh || ! command -v bwrap; then \
        apt-get update && apt-get install -y --no-install-recommends git openssh-client bubblewrap \
        && rm -rf /var/lib/apt/lists/*; \
    fi
RUN groupadd --gid 10001 gagar \
    && useradd --uid 10001 --gid gagar --no-create-home --home-dir /var/lib/gagar --shell /usr/sbin/nologin gagar \
    && install -d -o gagar -g gagar -m 700 /var/lib/gagar
ENV PATH=/opt/gagar/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 GAGAR_DATA_DIR=/var/lib/gagar
WORKDIR /srv/gagar
COPY --from=build /opt/gagar /opt/gagar
COPY --from=build /srv/gagar /srv/gagar
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Gagar" \
      org.opencontainers.image.description="Review, calibrate and deliver quality-aware advantages for code-agent RL" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
# A number, so that an orchestrator can see that it is not root.
USER 10001:10001
VOLUME /var/lib/gagar
EXPOSE 8000
# The web answers /healthz; a role without a port names GAGAR_HEARTBEAT_FILE.
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-I", "gagar_web/healthy.py"]
CMD ["uvicorn", "gagar_web.asgi:application", "--host", "0.0.0.0", "--lifespan", "off", "--log-level", "warning", \
     "--ws-max-size", "1048576", "--timeout-graceful-shutdown", "5"]
