from django.apps import AppConfig


class TrainingBridgeConfig(AppConfig):
    name = "training_bridge"
    default_auto_field = "django.db.models.BigAutoField"
