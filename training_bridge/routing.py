"""Two kinds of socket: a job's, by token and without an Origin, and a browser's, by session and matching Origin."""

from django.urls import path, re_path

from training_bridge.consumers import JobConsumer, PageConsumer, QueueConsumer

job_routes = [path("ws/v1/runs/<str:run>/advantages", JobConsumer.as_asgi())]
browser_routes = [
    path("ws/v1/queue/watch", QueueConsumer.as_asgi()),
    path("ws/v1/runs/<str:run>/watch", PageConsumer.as_asgi()),
]


def everything_else(app):
    """Any other path goes to the browsers' stack, which checks Origin and session."""
    return re_path(r"", app)
