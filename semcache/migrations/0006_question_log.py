"""What look-ups decided, kept for a while."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0005_vectors_of_any_size")]

    operations = [
        migrations.CreateModel(
            name="CacheLook",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("asked_at", models.DateTimeField(db_index=True)),
                (
                    "rule",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="looks",
                        to="semcache.cacherule",
                    ),
                ),
                ("outcome", models.CharField(max_length=16)),
                ("reason", models.CharField(max_length=32)),
                ("sharing", models.CharField(max_length=16)),
                ("tenant", models.CharField(max_length=64)),
                ("model", models.CharField(max_length=200)),
                ("scope", models.CharField(max_length=64)),
                ("prompt_sha256", models.CharField(max_length=64)),
                ("question", models.TextField(blank=True)),
                ("neighbour", models.BigIntegerField(null=True)),
                ("neighbour_question", models.TextField(blank=True)),
                ("similarity", models.FloatField(null=True)),
                ("is_guarded", models.BooleanField(default=False)),
                ("score", models.FloatField(null=True)),
                ("agreement", models.FloatField(null=True)),
                ("took_ms", models.FloatField(default=0.0)),
            ],
            options={"verbose_name": "look-up", "verbose_name_plural": "look-ups"},
        ),
        migrations.RunSQL(
            "ALTER TABLE semcache_cachelook SET UNLOGGED", "ALTER TABLE semcache_cachelook SET LOGGED"
        ),
    ]
