# One image for web and worker; compose.yaml says which command each runs.
FROM python:3.11-slim
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 GAGAR_DATA_DIR=/var/lib/gagar
WORKDIR /srv/gagar
COPY requirements.lock pyproject.toml ./
RUN pip install --no-cache-dir --require-hashes -r requirements.lock && pip install --no-cache-dir "django-storages[s3]>=1.14,<2"
COPY . .
RUN useradd --system --home /var/lib/gagar gagar && install -d -o gagar /var/lib/gagar
USER gagar
EXPOSE 8000
CMD ["uvicorn", "gagar_web.asgi:application", "--host", "0.0.0.0", "--port", "8000", "--lifespan", "off"]
