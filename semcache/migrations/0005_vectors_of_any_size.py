"""Let an entry hold a vector of any size, so that any embedder fits; looking up compares those of one size only.

Dropping the size rewrites nothing. Going back forgets vectors of other sizes: their entries are found by exact text.
"""

import pgvector.django.vector
from django.db import migrations

DROP_INDEXES = """
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT indexname FROM pg_indexes WHERE indexname LIKE 'entry\\_shared\\_meaning%' LOOP
    EXECUTE format('DROP INDEX %I', name);
  END LOOP;
END $$"""
DROP_STATISTICS = "DROP STATISTICS IF EXISTS entry_vector_size"
FORGET_OTHER_SIZES = "UPDATE semcache_cacheentry SET embedding = NULL WHERE vector_dims(embedding) <> 384"


class Migration(migrations.Migration):
    dependencies = [("semcache", "0004_flights")]

    operations = [
        migrations.AlterField(
            model_name="cacheentry",
            name="embedding",
            field=pgvector.django.vector.VectorField(blank=True, null=True),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, [DROP_INDEXES, DROP_STATISTICS, FORGET_OTHER_SIZES]),
    ]
