from django.db import migrations


class Migration(migrations.Migration):
    """What an answer holds of its quotas has to outlive its row: it is a `QuotaHold` now."""

    dependencies = [
        ("chat", "0005_tags_receipts_exports"),
    ]

    operations = [
        migrations.RemoveField(model_name="generation", name="reserved_tokens"),
    ]
