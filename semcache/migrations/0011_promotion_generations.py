"""By which generation an asker's seat is found when the asker is erased."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0010_rule_examples")]

    operations = [
        migrations.AddField(
            model_name="cachepromotion",
            name="generations",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.UUIDField(null=True), default=list, size=None
            ),
        ),
    ]
