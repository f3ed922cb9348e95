from django.core.management.base import BaseCommand

from grading.grader import crew


class Command(BaseCommand):
    help = "Grade with models until stopped, many groups at once. `serve` starts one; run as many as you like."

    def handle(self, **options):
        crew.run()
