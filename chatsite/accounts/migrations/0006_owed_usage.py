from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0005_quota_holds"),
    ]

    operations = [
        migrations.AddField(
            model_name="usagerecord",
            name="unseen_tokens",
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="is_owed",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name="usagerecord",
            index=models.Index(condition=Q(is_owed=True), fields=["created_at"], name="usage_owed"),
        ),
    ]
