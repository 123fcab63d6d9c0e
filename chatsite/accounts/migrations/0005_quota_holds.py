import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0004_quotas_prices_identities"),
    ]

    operations = [
        migrations.CreateModel(
            name="QuotaHold",
            fields=[
                ("generation", models.UUIDField(primary_key=True, serialize=False)),
                (
                    "uses",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), size=None),
                ),
                ("tokens", models.PositiveBigIntegerField()),
                ("expires_at", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
