"""Answers that are being made for everybody who asks the same at once."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0003_presets")]

    operations = [
        migrations.CreateModel(
            name="CacheFlight",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope", models.CharField(max_length=64)),
                ("prompt_sha256", models.CharField(max_length=64)),
                ("leader", models.UUIDField(unique=True)),
                (
                    "aboard",
                    django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), size=None),
                ),
                ("is_up", models.BooleanField(default=False)),
                ("is_landed", models.BooleanField(default=False)),
                ("expires_at", models.DateTimeField()),
            ],
        ),
        migrations.AddConstraint(
            model_name="cacheflight",
            constraint=models.UniqueConstraint(
                fields=("scope", "prompt_sha256"), name="one_flight_per_scope_and_prompt"
            ),
        ),
        # Worth nothing after a crash, and written twice for every miss: it needs no log.
        migrations.RunSQL(
            "ALTER TABLE semcache_cacheflight SET UNLOGGED", "ALTER TABLE semcache_cacheflight SET LOGGED"
        ),
    ]
