"""Names that people read in the admin, in both languages. Nothing in the database changes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("chat", "0011_conversation_model"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="conversation",
            options={"verbose_name": "conversation", "verbose_name_plural": "conversations"},
        ),
        migrations.AlterModelOptions(
            name="generation",
            options={"verbose_name": "generation", "verbose_name_plural": "generations"},
        ),
        migrations.AlterModelOptions(
            name="sharelink",
            options={"verbose_name": "shared link", "verbose_name_plural": "shared links"},
        ),
    ]
