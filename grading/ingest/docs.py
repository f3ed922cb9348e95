"""The API's own description: OpenAPI 3 and a page to browse it; and the answer for addresses that are none."""

from csp.constants import SELF, UNSAFE_INLINE
from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.views import APIView

from grading.errors import NotFound
from grading.ingest.auth import MachineTokenAuthentication
from grading.ingest.machine_view import AlwaysJson


@extend_schema(exclude=True)
class Schema(SpectacularAPIView):
    access = "public"
    authentication_classes = []


@method_decorator(csp_update({"style-src": [SELF, UNSAFE_INLINE]}), name="dispatch")  # Swagger writes style attributes
class Docs(SpectacularSwaggerSplitView):
    access = "public"
    authentication_classes = []


@extend_schema(exclude=True)
class NoSuchAddress(APIView):
    access = "public"
    authentication_classes = []
    permission_classes = []
    content_negotiation_class = AlwaysJson

    def initial(self, request, *args, **kwargs):
        raise NotFound("there is nothing at this address", got=request.path[:200], expected="/api/v1/schema/ lists all")


class MachineTokenScheme(OpenApiAuthenticationExtension):
    target_class = MachineTokenAuthentication
    name = "machine token"

    def get_security_definition(self, auto_schema):
        return {"type": "http", "scheme": "bearer", "description": "A run's token; shown once when it is made."}
