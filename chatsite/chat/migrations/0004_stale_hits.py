from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0003_kv_of_v1_answers"),
    ]

    operations = [
        migrations.AddField(
            model_name="generation",
            name="cache_is_stale",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
