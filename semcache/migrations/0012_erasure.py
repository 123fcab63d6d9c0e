"""By which generations look-ups and complaints are found when somebody is erased."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0011_promotion_generations")]

    operations = [
        migrations.AddField(
            model_name="cachecomplaint",
            name="generations",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.UUIDField(), db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="cachelook",
            name="generation",
            field=models.UUIDField(null=True),
        ),
    ]
