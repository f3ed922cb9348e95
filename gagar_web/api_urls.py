"""The site map of `/api/v1/`. Keys and ids may hold slashes, so what follows a key is matched first."""

from django.urls import path, re_path

from grading.ingest import api, bodies_api, declaring_api, docs, listing, trajectories_api
from training_bridge import api as twins
from training_bridge import rollout_views, series_api

RUN = "runs/<slug:run>"
TRAJECTORY = f"{RUN}/trajectories/<path:external_id>"

urlpatterns = [
    path("schema/", docs.Schema.as_view(), name="api-schema"),
    path("docs/", docs.Docs.as_view(url_name="api-schema"), name="api-docs"),
    path("tasks", listing.TaskList.as_view(), name="api-tasks"),
    path("tasks/<path:key>", api.Tasks.as_view(), name="api-task"),
    path("repositories/<str:sha256>", api.Repositories.as_view(), name="api-repository"),
    path(f"{RUN}/lives", api.Lives.as_view(), name="api-lives"),
    path(f"{RUN}/lives/<int:n>/end", twins.LifeEnd.as_view(), name="api-life-end"),
    path(f"{RUN}/resume", twins.ResumeTwin.as_view(), name="api-resume"),
    path(f"{RUN}/groups", declaring_api.GroupsOfRun.as_view(), name="api-groups"),
    path(f"{RUN}/groups/<path:key>/seal", api.Seal.as_view(), name="api-seal"),
    path(f"{RUN}/groups/<path:key>/amend", api.Amend.as_view(), name="api-amend"),
    path(f"{RUN}/groups/<path:key>/verdicts", listing.GroupVerdicts.as_view(), name="api-group-verdicts"),
    path(f"{RUN}/groups/<path:key>", api.Groups.as_view(), name="api-group"),
    path(f"{RUN}/trajectories", trajectories_api.Trajectories.as_view(), name="api-trajectories"),
    path(f"{TRAJECTORY}/events", bodies_api.Events.as_view(), name="api-events"),
    path(f"{TRAJECTORY}/patch", bodies_api.Raw.as_view(), {"body": "patch"}, name="api-patch"),
    path(f"{TRAJECTORY}/log", bodies_api.Raw.as_view(), {"body": "log"}, name="api-log"),
    path(f"{TRAJECTORY}/history", rollout_views.RolloutHistory.as_view(), name="api-rollout-history"),
    path(f"{RUN}/verdicts", listing.Verdicts.as_view(), name="api-verdicts"),
    path(f"{RUN}/decisions", listing.Decisions.as_view(), name="api-decisions"),
    path(f"{RUN}/advantages", twins.AdvantagesTwin.as_view(), name="api-advantages"),
    path(f"{RUN}/acks", twins.AcksTwin.as_view(), name="api-acks"),
    path(f"{RUN}/receipts", twins.ReceiptsTwin.as_view(), name="api-receipts"),
    path(f"{RUN}/metrics", twins.MetricsTwin.as_view(), name="api-metrics"),
    path(f"{RUN}/series", series_api.SeriesNames.as_view(), name="api-series"),
    path(f"{RUN}/series/curves", series_api.SeriesCurves.as_view(), name="api-series-curves"),
    path(f"{RUN}/series/rows", series_api.SeriesRows.as_view(), name="api-series-rows"),
    path(f"{RUN}/series/csv", series_api.SeriesCsv.as_view(), name="api-series-csv"),
    path(f"{RUN}/series/history", series_api.SeriesHistory.as_view(), name="api-series-history"),
    path(f"{RUN}/prometheus", series_api.Prometheus.as_view(), name="api-prometheus"),
    re_path(r"", docs.NoSuchAddress.as_view(), name="api-nothing"),
]
