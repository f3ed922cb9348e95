"""Pages of the bridge; `gagar_web.urls` includes them at the root, after those of grading."""

from django.urls import path

from training_bridge import advantage_views, explorer_filters, pausing_views, rollout_views, what_if_views
from training_bridge.monitor import export_views, views, views_alerts

explorer_filters.add()  # here, where the site is put together: a command that has no pages loads no numpy

urlpatterns = [
    path("runs/", views.runs, name="runs"),
    path("runs/<slug:public_id>/", views.monitor, name="monitor"),
    path("runs/<slug:public_id>/series.json", export_views.series_json, name="run-series"),
    path("runs/<slug:public_id>/series.csv", export_views.series_csv, name="run-series-csv"),
    path("runs/<slug:public_id>/points.json", export_views.history, name="run-points"),
    path("runs/<slug:public_id>/pause", pausing_views.pause, name="run-pause"),
    path("runs/<slug:public_id>/pause/switch", pausing_views.switch, name="run-pause-switch"),
    path("runs/<slug:public_id>/alerts/", views_alerts.run_alerts, name="run-alerts"),
    path("runs/<slug:public_id>/alerts/banner", views_alerts.banner, name="run-banner"),
    path("runs/<slug:public_id>/alerts/rules/<slug:sign>", views_alerts.rule, name="alert-rule"),
    path("runs/<slug:public_id>/alerts/secret", views_alerts.new_secret, name="webhook-secret"),
    path("runs/<slug:public_id>/alerts/test", views_alerts.test_webhook, name="webhook-test"),
    path("alerts/", views_alerts.all_alerts, name="alerts"),
    path("alerts/<int:pk>/", views_alerts.alert, name="alert"),
    path("alerts/<int:pk>/acknowledge", views_alerts.acknowledge, name="alert-acknowledge"),
    path("rollouts/", rollout_views.find, name="rollouts"),
    path("groups/<int:pk>/candidates/<str:letter>/history", rollout_views.history, name="rollout-history"),
    path("groups/<int:pk>/advantages", advantage_views.panel, name="advantage-panel"),
    path("groups/<int:pk>/deliveries", advantage_views.deliveries, name="group-deliveries"),
    path("runs/<slug:public_id>/what-if/knobs", what_if_views.knobs, name="what-if-knobs"),
    path("runs/<slug:public_id>/what-if/effects", what_if_views.effects, name="what-if-effects"),
    path("runs/<slug:public_id>/what-if/groups/<int:group>", what_if_views.strip, name="what-if-credit"),
    path("ws/v1/queue/watch", views.only_a_socket, name="ws-queue"),
    path("ws/v1/runs/<slug:public_id>/watch", views.only_a_socket, name="ws-run"),
]
