"""Templates to begin with. Those of everybody's that staff have made stay as they are."""

from django.db import migrations

from chatsite.chat.template_presets import add_missing


def add_presets(apps, schema_editor):
    add_missing(apps.get_model("chat", "PromptTemplate"))


class Migration(migrations.Migration):
    dependencies = [("chat", "0009_share_links")]

    # Staff may have changed them by now, and people have used them: going back leaves them.
    operations = [migrations.RunPython(add_presets, migrations.RunPython.noop)]
