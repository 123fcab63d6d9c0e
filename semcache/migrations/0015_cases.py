"""Questions with what the cache must do with them."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("semcache", "0014_comparisons"),
    ]

    operations = [
        migrations.CreateModel(
            name="CacheCase",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("question", models.TextField(verbose_name="question")),
                (
                    "tenant",
                    models.CharField(
                        blank=True,
                        help_text="As the entries name it, such as 1.",
                        max_length=64,
                        verbose_name="business line",
                    ),
                ),
                (
                    "owner",
                    models.CharField(
                        blank=True,
                        help_text="A creator as the entries name them, such as user:7; empty is somebody new.",
                        max_length=64,
                        verbose_name="asked by",
                    ),
                ),
                ("model", models.CharField(blank=True, max_length=200, verbose_name="model")),
                (
                    "expected",
                    models.CharField(
                        choices=[
                            ("hit", "a stored answer is served"),
                            ("miss", "the model answers"),
                            ("bypass", "the cache stays out of it"),
                            ("never", "this answer is never served"),
                        ],
                        max_length=16,
                        verbose_name="expected",
                    ),
                ),
                (
                    "rule",
                    models.CharField(
                        blank=True,
                        help_text="The one that has to decide.",
                        max_length=100,
                        verbose_name="rule",
                    ),
                ),
                (
                    "stored_question",
                    models.TextField(
                        blank=True,
                        help_text="The answer to exactly this stored question.",
                        verbose_name="stored question",
                    ),
                ),
                (
                    "answer_part",
                    models.TextField(
                        blank=True,
                        help_text="The stored answer has these words in it.",
                        verbose_name="words of the answer",
                    ),
                ),
                (
                    "note",
                    models.CharField(
                        blank=True, help_text="Why this case is kept.", max_length=200, verbose_name="note"
                    ),
                ),
                ("generation", models.UUIDField(editable=False, null=True)),
                ("definition", models.CharField(editable=False, max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[("new", "never run"), ("passed", "passed"), ("failed", "failed")],
                        default="new",
                        editable=False,
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                (
                    "problems",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), default=list, editable=False, size=None
                    ),
                ),
                ("got_outcome", models.CharField(blank=True, editable=False, max_length=16)),
                ("got_reason", models.CharField(blank=True, editable=False, max_length=32)),
                ("got_rule", models.CharField(blank=True, editable=False, max_length=100)),
                ("got_entry", models.BigIntegerField(editable=False, null=True)),
                ("rules_key", models.CharField(blank=True, editable=False, max_length=64)),
                ("ran_at", models.DateTimeField(editable=False, null=True, verbose_name="last run")),
                ("created_at", models.DateTimeField(editable=False)),
            ],
            options={
                "verbose_name": "regression case",
                "verbose_name_plural": "regression cases",
                "constraints": [
                    models.UniqueConstraint(fields=("definition",), name="one_case_per_definition"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("expected__in", ["hit", "never"]),
                            models.Q(("answer_part", ""), ("stored_question", "")),
                            _connector="OR",
                        ),
                        name="case_names_an_answer_only_where_one_is_served",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("expected", "never"), _negated=True),
                            models.Q(("stored_question", ""), _negated=True),
                            models.Q(("answer_part", ""), _negated=True),
                            _connector="OR",
                        ),
                        name="case_says_what_is_never_served",
                    ),
                ],
            },
        ),
    ]
