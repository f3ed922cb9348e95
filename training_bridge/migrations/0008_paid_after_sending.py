from django.db import migrations, models
from django.db.models import Max


def all_is_paid(apps, _schema_editor):
    """Until now what a row pays was counted in the transaction that stored it."""
    last = apps.get_model("training_bridge", "Delivery").objects.aggregate(last=Max("pk"))["last"]
    apps.get_model("training_bridge", "Stream").objects.update(paid_to=last or 0)


class Migration(migrations.Migration):

    dependencies = [("training_bridge", "0007_few_of_several")]

    operations = [
        migrations.AddField("stream", "paid_to", models.PositiveBigIntegerField(default=0)),
        migrations.AddField("stream", "owes", models.BooleanField(default=False)),
        migrations.RunPython(all_is_paid, migrations.RunPython.noop),
    ]
