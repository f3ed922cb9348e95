import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("grading", "0015_explorer_rows")]

    operations = [
        migrations.AlterField(
            model_name="signal",
            name="group",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="grading.rolloutgroup",
            ),
        ),
    ]
