"""The site map of `/api/v1/`. Keys and ids may hold slashes, so what follows a key is matched first."""

from django.urls import path, re_path

from grading.ingest import api, bodies_api, docs, listing, trajectories_api
from training_bridge import api as twins

RUN = "runs/<slug:run>"
TRAJECTORY = f"{RUN}/trajectories/<path:external_id>"

urlpatterns = [
    path("schema/", docs.Schema.as_view(), name="api-schema"),
    path("docs/", docs.Docs.as_view(url_name="api-schema"), name="api-docs"),
    path("tasks", listing.TaskList.as_view(), name="api-tasks"),
    path("tasks/<path:key>", api.Tasks.as_view(), name="api-task"),
    path("repositories/<str:sha256>", api.Repositories.as_view(), name="api-repository"),
    path(f"{RUN}/lives", api.Lives.as_view(), name="api-lives"),
    path(f"{RUN}/groups", listing.GroupList.as_view(), name="api-groups"),
    path(f"{RUN}/groups/<path:key>/seal", api.Seal.as_view(), name="api-seal"),
    path(f"{RUN}/groups/<path:key>/amend", api.Amend.as_view(), name="api-amend"),
    path(f"{RUN}/groups/<path:key>/verdicts", listing.GroupVerdicts.as_view(), name="api-group-verdicts"),
    path(f"{RUN}/groups/<path:key>", api.Groups.as_view(), name="api-group"),
    path(f"{RUN}/trajectories", trajectories_api.Trajectories.as_view(), name="api-trajectories"),
    path(f"{TRAJECTORY}/events", bodies_api.Events.as_view(), name="api-events"),
    path(f"{TRAJECTORY}/patch", bodies_api.Raw.as_view(), {"body": "patch"}, name="api-patch"),
    path(f"{TRAJECTORY}/log", bodies_api.Raw.as_view(), {"body": "log"}, name="api-log"),
    path(f"{RUN}/verdicts", listing.Verdicts.as_view(), name="api-verdicts"),
    path(f"{RUN}/decisions", listing.Decisions.as_view(), name="api-decisions"),
    path(f"{RUN}/advantages", twins.AdvantagesTwin.as_view(), name="api-advantages"),
    path(f"{RUN}/acks", twins.AcksTwin.as_view(), name="api-acks"),
    path(f"{RUN}/receipts", twins.ReceiptsTwin.as_view(), name="api-receipts"),
    path(f"{RUN}/metrics", twins.MetricsTwin.as_view(), name="api-metrics"),
    re_path(r"", docs.NoSuchAddress.as_view(), name="api-nothing"),
]
