"""Makes the default business line, to which users belong unless somebody says otherwise."""

from django.db import migrations


def make_default_tenant(apps, schema_editor):
    apps.get_model("accounts", "Tenant").objects.get_or_create(
        slug="default", defaults={"name": "Default", "is_default": True}
    )


class Migration(migrations.Migration):
    dependencies = [("accounts", "0001_initial")]
    operations = [migrations.RunPython(make_default_tenant, migrations.RunPython.noop)]
