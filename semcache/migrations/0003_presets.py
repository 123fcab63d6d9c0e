"""The rules every installation starts with. An operator's own rule of the same name stays as it is."""

from django.db import migrations

from semcache.rules.presets import add_missing


def add_presets(apps, schema_editor):
    add_missing(apps.get_model("semcache", "CacheRule"))


class Migration(migrations.Migration):
    dependencies = [("semcache", "0002_use_follows_entry")]

    # Rules may carry entries and edits by now: going back leaves them.
    operations = [migrations.RunPython(add_presets, migrations.RunPython.noop)]
