from django.urls import include, path

urlpatterns = [path("api/v1/", include("gagar_web.api_urls"))]
handler400 = "grading.ingest.refusals.bad_request"
handler500 = "grading.ingest.refusals.server_error"
