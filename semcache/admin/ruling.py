"""What staff do to rules, whatever the door: saved as the form has them, put into order, deleted with their answers.

Each acts within two seconds in every process, in this one at once, and writes its audit line. The caller has checked
the permission.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest

from semcache import service
from semcache.admin.audit import changed, note_many, note_row
from semcache.admin.evict import evict_all
from semcache.admin.forms import CacheRuleForm
from semcache.models import CacheEntry, CacheRule
from semcache.rules.presets import add_missing

# Between the priorities of neighbours, so that a rule fits in between later.
PRIORITY_STEP = 10


class NotAllRules(ValueError):
    """An order must name every rule once."""


def save_rule(request: HttpRequest, form: CacheRuleForm) -> CacheRule:
    """The rule of a valid form."""
    with transaction.atomic():
        rule: CacheRule = form.save()
        note_row(request, rule, changed(form))
    service.forget_rules()
    return rule


def order_rules(request: HttpRequest, ids: Sequence[int]) -> None:
    """The rules take precedence in this order. Raises NotAllRules."""
    with transaction.atomic():
        rules = {rule.pk: rule for rule in CacheRule.objects.select_for_update().order_by("pk")}
        if sorted(ids) != sorted(rules):
            raise NotAllRules
        for place, pk in enumerate(ids, start=1):
            rule, priority = rules[pk], place * PRIORITY_STEP
            if rule.priority != priority:
                note_row(request, rule, f"priority: {rule.priority} -> {priority}")
                rule.priority = priority
                rule.save(update_fields=["priority", "updated_at"])
    service.forget_rules()


def delete_rules(rules: QuerySet[CacheRule]) -> None:
    """A rule takes its answers with it."""
    evict_all(CacheEntry.objects.filter(rule__in=rules))
    rules.delete()
    service.forget_rules()


def add_presets(request: HttpRequest) -> list[str]:
    """The names of the presets that were missing and are there now."""
    names = add_missing(CacheRule)
    service.forget_rules()
    if names:
        note_many(request, CacheRule, f"presets added: {', '.join(names)}")
    return names
