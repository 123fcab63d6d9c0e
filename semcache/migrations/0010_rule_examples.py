"""Example questions of rules."""

import django.contrib.postgres.fields
import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0009_scope_without_embedder")]

    operations = [
        migrations.AddField(
            model_name="cacherule",
            name="examples",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=500),
                blank=True,
                db_default=[],
                default=list,
                help_text="One in a line. A question that is near one of them matches, whatever its words.",
                size=None,
                verbose_name="example questions",
            ),
        ),
        migrations.AddField(
            model_name="cacherule",
            name="example_similarity",
            field=models.FloatField(
                db_default=0.9,
                default=0.9,
                help_text="How alike a question and an example must be. Try it with “Test a question”.",
                validators=[
                    django.core.validators.MinValueValidator(0.0),
                    django.core.validators.MaxValueValidator(1.0),
                ],
                verbose_name="near from similarity",
            ),
        ),
    ]
