"""Pairs of questions of which one must not be answered with the other's answer again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0006_question_log")]

    operations = [
        migrations.CreateModel(
            name="CacheComplaint",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("scope", models.CharField(max_length=64)),
                ("asked_sha256", models.CharField(max_length=64)),
                ("reading_sha256", models.CharField(max_length=64)),
                ("stored_sha256", models.CharField(max_length=64)),
                ("why", models.CharField(max_length=16)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "complaint",
                "verbose_name_plural": "complaints",
                "indexes": [models.Index(fields=["scope", "stored_sha256"], name="complaint_of_entry")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope", "asked_sha256", "stored_sha256"), name="one_complaint_per_pair"
                    )
                ],
            },
        )
    ]
