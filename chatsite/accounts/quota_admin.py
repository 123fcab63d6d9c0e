"""Quotas in the admin: made and changed with mistakes shown at their field, and how each one stands in its window.

A change counts from the next question on in every process, because every admission reads the rows. Knows forms; the
rules are in `accounts.quotas`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.db.models import Max, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatsite.accounts.models import Quota, QuotaUse
from chatsite.accounts.quotas.rules import COUNTS_FOR, window_start
from semcache.admin.audit import changed

MAX_WINDOW_S = 366 * 86_400
KINDS = {"requests": _("requests"), "tokens": _("tokens")}
# The field that names whom a quota for one subject is for.
NAMED = {Quota.Applies.USER: "user", Quota.Applies.KEY: "api_key", Quota.Applies.TENANT: "tenant"}


class QuotaForm(forms.ModelForm):
    window_s = forms.IntegerField(
        label=_("window in seconds"),
        min_value=1,
        max_value=MAX_WINDOW_S,
        help_text=_("60 is a minute, 3600 an hour, 86400 a day, 604800 a week."),
    )

    class Meta:
        model = Quota
        fields: ClassVar = ["applies", "user", "api_key", "tenant", "window_s", "max_requests", "max_tokens"]
        labels: ClassVar = {
            "applies": _("applies to"),
            "user": _("user"),
            "api_key": _("API key"),
            "tenant": _("business line"),
            "max_requests": _("requests"),
            "max_tokens": _("tokens"),
        }
        help_texts: ClassVar = {
            "max_requests": _("Empty: not limited by this quota."),
            "max_tokens": _("Empty: not limited by this quota."),
        }

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        wanted = NAMED.get(given.get("applies", ""))
        for name in NAMED.values():
            if name == wanted and given.get(name) is None and name not in self.errors:
                self.add_error(name, _("Say whom the quota is for."))
            elif name != wanted and given.get(name) is not None:
                self.add_error(name, _("A quota for this has another field, or none; leave this one empty."))
        if given.get("max_requests") is None and given.get("max_tokens") is None and not self.errors:
            self.add_error("max_requests", _("Limit requests, tokens, or both."))
        if not self.errors and self._is_there_already(given):
            self.add_error("window_s", _("There is a quota of this window already."))
        return given

    def _is_there_already(self, given: dict[str, Any]) -> bool:
        subject = {name: given.get(name) for name in ("applies", "window_s", *NAMED.values())}
        same = Quota.objects.filter(
            **{name: value for name, value in subject.items() if value is not None},
            **{f"{name}__isnull": True for name, value in subject.items() if value is None},
        )
        return same.exclude(pk=self.instance.pk).exists()


class QuotaAdmin(admin.ModelAdmin):
    form = QuotaForm
    list_display = ("whom", "window_s", "max_requests", "max_tokens", "most_used")
    list_filter = ("applies",)
    list_select_related = ("user", "api_key", "tenant")
    search_fields = ("user__username", "api_key__name", "api_key__prefix", "tenant__name")
    autocomplete_fields = ("user", "api_key", "tenant")
    list_per_page = 50
    ordering = ("applies", "window_s", "pk")

    @admin.display(description=_("applies to"), ordering="applies")
    def whom(self, quota: Quota) -> str:
        named = quota.user or quota.api_key or quota.tenant
        return f"{quota.get_applies_display()}: {named}" if named else quota.get_applies_display()

    @admin.display(description=_("used most, in this window"))
    def most_used(self, quota: Quota) -> str:
        """Of one subject its own use; of each that of whoever has used most. One short query for each row shown."""
        counted = _counters(quota).aggregate(requests=Max("requests"), tokens=Max("tokens"))
        limits = {"requests": quota.max_requests, "tokens": quota.max_tokens}
        shares = [
            f"{KINDS[kind]} {100 * (counted[kind] or 0) // limit if limit else 100} %"
            for kind, limit in limits.items()
            if limit is not None
        ]
        return ", ".join(shares)

    def construct_change_message(  # type: ignore[override]
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> str:
        return changed(form)


def _counters(quota: Quota) -> QuerySet[QuotaUse]:
    """Those of the window that runs now."""
    starts_at = window_start(timezone.now(), quota.window_s)
    counters = QuotaUse.objects.filter(window_s=quota.window_s, window_start=starts_at)
    counts_for = COUNTS_FOR[Quota.Applies(quota.applies)]
    named = quota.user_id or quota.api_key_id or quota.tenant_id
    if named is None:
        return counters.filter(subject__startswith=f"{counts_for}:")
    return counters.filter(subject=f"{counts_for}:{named}")
