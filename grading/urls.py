"""The site map of grading: queue, groups with their review page, tasks, teams, a run's settings."""

from django.urls import path

from grading.review import views, views_lists, views_tasks, views_teams, views_trajectory

GROUP = "groups/<int:pk>"
CANDIDATE = f"{GROUP}/candidates/<str:letter>"
RUN = "runs/<slug:public_id>"
TEAM = "teams/<slug:slug>"

urlpatterns = [
    path("queue/", views_lists.queue_page, name="queue"),
    path("queue/next", views_lists.queue_next, name="queue-next"),
    path("queue/claim-first", views_lists.claim_first, name="queue-claim-first"),
    path("groups/", views_lists.groups_page, name="groups"),
    path(f"{GROUP}/", views.group, name="group"),
    path(f"{GROUP}/claim", views.claim, name="group-claim"),
    path(f"{GROUP}/release", views.release, name="group-release"),
    path(f"{GROUP}/draft", views.draft, name="group-draft"),
    path(f"{GROUP}/correct", views.correct, name="group-correct"),
    path(f"{GROUP}/approve", views.approve, name="group-approve"),
    path(f"{GROUP}/fall-back", views.fall_back, name="group-fall-back"),
    path(f"{GROUP}/leak", views.leak, name="group-leak"),
    path(f"{GROUP}/broken", views.broken, name="group-broken"),
    path(f"{GROUP}/history", views_tasks.group_history, name="history"),
    path(f"{GROUP}/verdicts/<int:verdict>", views_tasks.verdict, name="verdict"),
    path(f"{CANDIDATE}/files/<int:index>", views.group_file, name="group-file"),
    path(f"{CANDIDATE}/", views_trajectory.trajectory, name="trajectory"),
    path(f"{CANDIDATE}/events/<int:index>", views_trajectory.event, name="event"),
    path(f"{CANDIDATE}/log", views_trajectory.log, name="trajectory-log"),
    path("tasks/", views_tasks.tasks, name="tasks"),
    path("tasks/<int:pk>/quarantine", views_tasks.quarantine, name="task-quarantine"),
    path("tasks/<int:pk>/release", views_tasks.release, name="task-release"),
    path("teams/", views_teams.teams, name="teams"),
    path(f"{TEAM}/", views_teams.team, name="team"),
    path(f"{TEAM}/members", views_teams.member_add, name="member-add"),
    path(f"{TEAM}/members/<int:pk>/role", views_teams.member_role, name="member-role"),
    path(f"{TEAM}/members/<int:pk>/remove", views_teams.member_remove, name="member-remove"),
    path("new-run", views_teams.run_new, name="run-new"),
    path(f"{RUN}/settings", views_teams.run_settings, name="run-settings"),
    path(f"{RUN}/tokens", views_teams.token_new, name="token-new"),
    path(f"{RUN}/tokens/<int:pk>/revoke", views_teams.token_revoke, name="token-revoke"),
]
