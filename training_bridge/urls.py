"""Pages of the bridge; `gagar_web.urls` includes them at the root, after those of grading."""

from django.urls import path

from training_bridge import advantage_views
from training_bridge.monitor import views

urlpatterns = [
    path("runs/", views.runs, name="runs"),
    path("runs/<slug:public_id>/", views.monitor, name="monitor"),
    path("runs/<slug:public_id>/series.json", views.series, name="run-series"),
    path("runs/<slug:public_id>/pause", views.pause, name="run-pause"),
    path("groups/<int:pk>/advantages", advantage_views.panel, name="advantage-panel"),
    path("groups/<int:pk>/deliveries", advantage_views.deliveries, name="group-deliveries"),
    path("ws/v1/queue/watch", views.only_a_socket, name="ws-queue"),
    path("ws/v1/runs/<slug:public_id>/watch", views.only_a_socket, name="ws-run"),
]
