"""What workers make once more lies in a table and no longer in the broker."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0007_search"),
    ]

    operations = [
        migrations.CreateModel(
            name="AgainOrder",
            fields=[
                ("run", models.UUIDField(primary_key=True, serialize=False)),
                ("order", models.JSONField()),
                ("created_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                (
                    "generation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="chat.generation"
                    ),
                ),
            ],
        ),
    ]
