"""What each rule did: entries, hits, look-ups, and what they saved, as columns beside the rules themselves."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Count, Max, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Now

from semcache.models import CacheRule, CacheRuleHour

DAY, MONTH = timedelta(days=1), timedelta(days=30)


def with_figures(rules: QuerySet[CacheRule]) -> QuerySet[CacheRule]:
    """Look-ups and hits of the last day, tokens and time saved in the last 30, and what is stored now."""
    done = CacheRuleHour.objects.filter(rule=OuterRef("pk")).order_by().values("rule")
    day, month = done.filter(hour__gt=Now() - DAY), done.filter(hour__gt=Now() - MONTH)
    return rules.annotate(
        look_count=Subquery(day.annotate(n=Sum("looks")).values("n")),
        exact_count=Subquery(day.annotate(n=Sum("exact_hits")).values("n")),
        semantic_count=Subquery(day.annotate(n=Sum("semantic_hits")).values("n")),
        token_count=Subquery(month.annotate(n=Sum("tokens_saved")).values("n")),
        ms_count=Subquery(month.annotate(n=Sum("ms_saved")).values("n")),
        entry_count=Count("entries"),
        hit_count=Sum("entries__use__hits", default=0),
        last_hit_at=Max("entries__use__last_used_at"),
    )
