"""One place answers a refused step: JSON for machines, a page in plain words for people."""

from django.http import JsonResponse
from django.shortcuts import render

from grading.errors import GradingError
from grading.ingest.refusals import API


class SayWhatWasRefused:
    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        return self.get_response(request)

    def process_exception(self, request, exception):
        if not isinstance(exception, GradingError):
            return None
        if request.path.startswith(API):
            return JsonResponse(exception.as_json(), status=exception.status)
        return render(request, "errors/refused.html", {"error": exception}, status=exception.status)
