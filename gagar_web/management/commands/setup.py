from django.core.management.base import BaseCommand

from gagar_web.setup import say, set_up


class Command(BaseCommand):
    help = "Migrate, make the default team and the first admin (its password is shown once). Safe to repeat."

    def handle(self, **options):
        self.stdout.write(say(set_up(), "the address you serve it on"))
