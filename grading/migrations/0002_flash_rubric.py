from django.db import migrations

FLASH = {
    "weights": {
        "approach": "0.30",
        "precision": "0.25",
        "minimality": "0.20",
        "side_effects": "0.15",
        "consistency": "0.10",
    },
    "constants": {"runner": "0.9", "min": "0.4", "max": "0.85", "low": "0.2", "lambda_max": "1.5"},
    "thresholds": {"t1_floor": 4, "t3_approach": 1, "t3_minimality": 2, "t3_side_effects": 2},
}


def publish_flash(apps, schema_editor):
    apps.get_model("grading", "RubricVersion").objects.create(number=1, name="Flash", definition=FLASH)


class Migration(migrations.Migration):
    dependencies = [("grading", "0001_initial")]
    operations = [migrations.RunPython(publish_flash, migrations.RunPython.noop)]
