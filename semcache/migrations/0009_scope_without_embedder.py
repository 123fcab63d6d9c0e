"""A scope no longer names the embedder, so every digest is another one: no look-up finds the rows from before.

What a digest was made of is not stored, so the rows cannot be moved: they go, and the complaints about them, in batches
as the clean-up does it. Going back brings nothing back; rows written meanwhile end with their time.
"""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models

BATCH = 500
DELETE_BATCH = """
DELETE FROM {table} WHERE id IN (SELECT id FROM {table} ORDER BY id LIMIT {batch} FOR UPDATE SKIP LOCKED)"""


def delete_unreachable(apps, schema_editor):
    for table in ("semcache_cacheentry", "semcache_cachecomplaint"):
        with schema_editor.connection.cursor() as cursor:
            cursor.execute(DELETE_BATCH.format(table=table, batch=BATCH))
            while cursor.rowcount:
                cursor.execute(DELETE_BATCH.format(table=table, batch=BATCH))


class Migration(migrations.Migration):
    # Each batch and the index are transactions of their own.
    atomic = False
    dependencies = [("semcache", "0008_quality")]

    operations = [
        migrations.RunPython(delete_unreachable, migrations.RunPython.noop),
        # What waits for a new embedder is found without reading the table.
        AddIndexConcurrently(
            model_name="cacheentry",
            index=models.Index(
                condition=models.Q(("embedding__isnull", False)),
                fields=["embedder", "id"],
                name="entry_embedder",
            ),
        ),
    ]
