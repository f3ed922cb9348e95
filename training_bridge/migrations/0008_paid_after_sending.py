from django.db import migrations, models
from django.db.models import F


def all_is_paid(apps, _schema_editor):
    """Until now what a row pays was counted in the transaction that stored it."""
    apps.get_model("training_bridge", "Stream").objects.update(paid_seq=F("head_seq"))


class Migration(migrations.Migration):

    dependencies = [("training_bridge", "0007_few_of_several")]

    operations = [
        migrations.AddField("stream", "paid_seq", models.PositiveBigIntegerField(default=0)),
        migrations.RunPython(all_is_paid, migrations.RunPython.noop),
    ]
