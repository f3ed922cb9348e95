"""The site map: pages of grading and of the bridge, the API of machines, sign-in, and who answers a failure."""

from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.generic import RedirectView

from grading.access import open_to_all, viewer_required

urlpatterns = [
    path("", viewer_required(RedirectView.as_view(pattern_name="runs"))),
    path("sign-in", open_to_all(auth.LoginView.as_view(redirect_authenticated_user=True)), name="login"),
    path("sign-out", open_to_all(auth.LogoutView.as_view()), name="logout"),
    path("password", open_to_all(auth.PasswordChangeView.as_view()), name="password_change"),
    path("password/changed", open_to_all(auth.PasswordChangeDoneView.as_view()), name="password_change_done"),
    path("api/v1/", include("gagar_web.api_urls")),
    path("", include("grading.urls")),
    path("", include("training_bridge.urls")),
]
handler400 = "gagar_web.failures.malformed"
handler403 = "gagar_web.failures.not_allowed"
handler404 = "gagar_web.failures.not_found"
handler500 = "gagar_web.failures.failed"
