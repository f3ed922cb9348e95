"""The rooms of calibration, each under /calibration/."""

from django.urls import path

from grading.calibration import views, views_agreement, views_fit

urlpatterns = [
    path("", views.knobs, name="calibration"),
    path("agreement", views_agreement.agreement, name="agreement"),
    path("fleet", views_agreement.fleet, name="fleet"),
    path("fit/", views_fit.fit_page, name="calibration-fit"),
    path("runs/<slug:public_id>/fit", views_fit.fit_now, name="calibration-fit-now"),
    path("runs/<slug:public_id>/gate", views_fit.gate_now, name="calibration-gate"),
    path("runs/<slug:public_id>/gate-grader", views_fit.gate_grader, name="calibration-gate-grader"),
    path("versions/", views.versions, name="rubric-versions"),
    path("versions/publish", views.publish_version, name="rubric-publish"),
    path("runs/<slug:public_id>/rubric", views.choose_version, name="rubric-choose"),
    path("bias", views_agreement.bias, name="bias"),
    path("drift", views_agreement.drift, name="drift"),
    path("drift/anchors", views_agreement.anchor_choose, name="anchor-choose"),
    path("drift/anchors/<int:pk>/retire", views_agreement.anchor_retire, name="anchor-retire"),
    path("drift/teams/<slug:slug>/draw", views_agreement.anchor_draw, name="anchor-draw"),
    path("drift/runs/<slug:public_id>/round", views_agreement.anchor_round, name="anchor-round"),
]
