from django.urls import include, path

urlpatterns = [path("api/v1/", include("gagar_web.api_urls"))]
