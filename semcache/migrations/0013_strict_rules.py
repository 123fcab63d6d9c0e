"""Rules under which nothing overrules the guard."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0012_erasure")]

    operations = [
        migrations.AddField(
            model_name="cacherule",
            name="is_strict",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Only what the guard finds no difference in is served by meaning, not even a word without its equal: neither a second opinion nor several agreeing answers can overrule it.",
                verbose_name="strict",
            ),
        ),
    ]
