"""The model by which a conversation is answered."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chat", "0010_template_presets")]

    operations = [
        migrations.AddField(
            model_name="conversation",
            name="model",
            field=models.CharField(blank=True, db_default="", default="", max_length=200),
        ),
    ]
