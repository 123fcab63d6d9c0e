"""What is known of the quality of answers: checks, hours, promotions; imports, and what an answer hangs on."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("semcache", "0007_complaints"),
    ]

    operations = [
        migrations.AddField(
            model_name="cacheentry",
            name="context",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(), blank=True, db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="cacheentry",
            name="may_be_stale",
            field=models.BooleanField(db_default=True, default=True),
        ),
        migrations.AddField(
            model_name="cacheentry",
            name="source",
            field=models.CharField(
                choices=[
                    ("answer", "an answer to somebody"),
                    ("import", "brought in from a file"),
                    ("promotion", "promoted from several people's answers"),
                ],
                db_default="answer",
                default="answer",
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="cacheentry",
            name="took_ms",
            field=models.FloatField(db_default=0.0, default=0.0),
        ),
        migrations.AddField(
            model_name="cacherule",
            name="check_share",
            field=models.FloatField(
                default=0.0,
                help_text="The share of answers served by meaning that the model makes once more, unseen, to compare them. 0: none.",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
                verbose_name="answers checked",
            ),
        ),
        migrations.AddField(
            model_name="cacherule",
            name="tightened",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "no"),
                    ("verify", "every answer by meaning needs a second opinion"),
                    ("exact", "exact match only"),
                ],
                default="",
                editable=False,
                max_length=16,
                verbose_name="tightened",
            ),
        ),
        migrations.AddField(
            model_name="cacherule",
            name="tightened_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="cacherule",
            name="wrong_share",
            field=models.FloatField(
                default=0.01,
                help_text="As a share of the answers that this rule serves; past it the rule tightens itself.",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
                verbose_name="wrong answers allowed",
            ),
        ),
        migrations.CreateModel(
            name="CacheImport",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("tenant", models.CharField(blank=True, max_length=64, verbose_name="business line")),
                ("system_prompt", models.TextField(blank=True, verbose_name="system prompt")),
                ("file_name", models.CharField(max_length=200)),
                ("rows", models.JSONField(default=list)),
                ("num_rows", models.PositiveIntegerField()),
                ("num_done", models.PositiveIntegerField(default=0)),
                ("num_refused", models.PositiveIntegerField(default=0)),
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
                ("trouble", models.TextField(blank=True)),
                ("created_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="imports",
                        to="semcache.cacherule",
                    ),
                ),
            ],
            options={
                "verbose_name": "import",
                "verbose_name_plural": "imports",
            },
        ),
        migrations.CreateModel(
            name="CacheCheck",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("generation", models.UUIDField(null=True, unique=True)),
                ("entry", models.BigIntegerField(null=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("sampled", "made once more and compared"),
                            ("thumb", "a thumb"),
                            ("staff", "marked by staff"),
                        ],
                        max_length=16,
                    ),
                ),
                ("is_wrong", models.BooleanField()),
                ("similarity", models.FloatField(null=True)),
                ("score", models.FloatField(null=True)),
                ("checked_at", models.DateTimeField()),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="checks",
                        to="semcache.cacherule",
                    ),
                ),
            ],
            options={
                "verbose_name": "check",
                "verbose_name_plural": "checks",
                "indexes": [models.Index(fields=["rule", "checked_at"], name="check_of_rule")],
            },
        ),
        migrations.CreateModel(
            name="CachePromotion",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("scope", models.CharField(max_length=64)),
                ("prompt_sha256", models.CharField(max_length=64)),
                (
                    "askers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), default=list, size=None
                    ),
                ),
                (
                    "entries",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                ("created_at", models.DateTimeField()),
                ("promoted_at", models.DateTimeField(null=True)),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="promotions",
                        to="semcache.cacherule",
                    ),
                ),
            ],
            options={
                "verbose_name": "promotion",
                "verbose_name_plural": "promotions",
                "constraints": [
                    models.UniqueConstraint(
                        fields=("scope", "prompt_sha256"), name="one_promotion_per_scope_and_prompt"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="CacheRuleHour",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("hour", models.DateTimeField()),
                ("looks", models.PositiveBigIntegerField(default=0)),
                ("exact_hits", models.PositiveBigIntegerField(default=0)),
                ("semantic_hits", models.PositiveBigIntegerField(default=0)),
                ("stale_hits", models.PositiveBigIntegerField(default=0)),
                ("tokens_saved", models.PositiveBigIntegerField(default=0)),
                ("ms_saved", models.FloatField(default=0.0)),
                (
                    "rule",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hours",
                        to="semcache.cacherule",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("rule", "hour"), name="one_row_per_rule_and_hour")
                ],
            },
        ),
    ]
