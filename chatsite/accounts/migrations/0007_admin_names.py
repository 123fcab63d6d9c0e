"""Names that people read in the admin, in both languages. Nothing in the database changes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_owed_usage"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="apikey",
            options={"verbose_name": "API key", "verbose_name_plural": "API keys"},
        ),
        migrations.AlterModelOptions(
            name="identity",
            options={"verbose_name": "identity", "verbose_name_plural": "identities"},
        ),
        migrations.AlterModelOptions(
            name="price",
            options={"verbose_name": "price", "verbose_name_plural": "prices"},
        ),
        migrations.AlterModelOptions(
            name="quota",
            options={"verbose_name": "quota", "verbose_name_plural": "quotas"},
        ),
        migrations.AlterModelOptions(
            name="tenant",
            options={"verbose_name": "business line", "verbose_name_plural": "business lines"},
        ),
        migrations.AlterModelOptions(
            name="usageday",
            options={"verbose_name": "usage of a day", "verbose_name_plural": "usage by day"},
        ),
        migrations.AlterModelOptions(
            name="usagerecord",
            options={"verbose_name": "usage record", "verbose_name_plural": "usage records"},
        ),
    ]
