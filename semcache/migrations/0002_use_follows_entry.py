"""Let the database delete an entry's use with the entry, however the entry is deleted."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("semcache", "0001_initial")]

    operations = [
        migrations.AlterField(
            model_name="cacheentryuse",
            name="entry",
            field=models.OneToOneField(
                db_constraint=False,
                on_delete=django.db.models.deletion.CASCADE,
                primary_key=True,
                related_name="use",
                serialize=False,
                to="semcache.cacheentry",
            ),
        ),
        migrations.RunSQL(
            "ALTER TABLE semcache_cacheentryuse ADD CONSTRAINT use_of_an_entry"
            " FOREIGN KEY (entry_id) REFERENCES semcache_cacheentry (id) ON DELETE CASCADE",
            "ALTER TABLE semcache_cacheentryuse DROP CONSTRAINT use_of_an_entry",
        ),
    ]
