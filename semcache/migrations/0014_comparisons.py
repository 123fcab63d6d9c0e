"""Stored answers beside what the model says now."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0013_strict_rules")]

    operations = [
        migrations.CreateModel(
            name="CacheComparison",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("author", models.CharField(max_length=64)),
                ("question", models.TextField()),
                ("tenant", models.CharField(blank=True, max_length=64)),
                ("owner", models.CharField(blank=True, max_length=64)),
                ("model", models.CharField(blank=True, max_length=200)),
                ("entry", models.BigIntegerField()),
                ("generation", models.UUIDField(null=True)),
                ("stored_question", models.TextField()),
                ("stored_answer", models.TextField()),
                ("made", models.TextField(blank=True)),
                ("is_whole", models.BooleanField(default=False)),
                ("is_same", models.BooleanField(null=True)),
                ("score", models.FloatField(null=True)),
                ("took_ms", models.FloatField(default=0.0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        default="waiting",
                        max_length=16,
                    ),
                ),
                ("trouble", models.CharField(blank=True, max_length=32)),
                ("created_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name": "comparison",
                "verbose_name_plural": "comparisons",
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(state__in=["waiting", "running"]),
                        fields=("author",),
                        name="one_open_comparison_per_author",
                    )
                ],
            },
        ),
    ]
