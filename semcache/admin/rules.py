"""The operator's rules of the cache: the list in order of precedence, presets, and a page that says what a question
would meet.

Parses, calls, formats. Rules are judged by `policy`; nothing is decided here.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from semcache import service
from semcache.admin.audit import changed
from semcache.admin.budget import BudgetPages, loosen_view
from semcache.admin.compare import compare_view, comparison_view
from semcache.admin.dryrun import dry_run
from semcache.admin.entries import forbidden, since
from semcache.admin.figures import with_figures
from semcache.admin.forms import CacheRuleForm, ThresholdForm, TryQuestionForm
from semcache.admin.imports import import_view
from semcache.admin.ruling import add_presets, delete_rules
from semcache.admin.trial import as_json, cases_of, compared, shared, told
from semcache.admin.tuner import STEP, bars, curve, seen_by
from semcache.lending import may_be_answered
from semcache.models import CacheEntry, CacheRule
from semcache.quality import canary, cases
from semcache.storage import reembed


class CacheRuleAdmin(BudgetPages):
    class Media:
        css: ClassVar = {"all": ["semcache/admin.css"]}

    form = CacheRuleForm
    change_list_template = "admin/semcache/cacherule/change_list.html"
    change_form_template = "admin/semcache/cacherule/change_form.html"
    list_display = (
        "name", "is_enabled", "priority", "matches", "what", "shown_ttl", "num_entries", "num_hits", "hit_rate",
        "last_hit", "saved", "wrong",
    )  # fmt: skip
    list_editable = ("priority",)
    ordering = ("priority", "id")
    search_fields = ("name", "pattern")
    fieldsets = (
        (None, {"fields": ("name", "is_enabled", "priority", "tags")}),
        (
            _("Which questions"),
            {
                "fields": ("pattern", "keywords", "examples", "example_similarity", "tenant", "model"),
                "description": _(
                    "The pattern or any keyword must be found in the question, or the question must be near an "
                    "example; a business line and a model must be the question's. With all of them empty the rule "
                    "matches every question. Of several rules that match the one with the lowest priority number "
                    "decides; at equal priority “never cache” and “exact match only” first, then the more specific "
                    "rule, then the older one."
                ),
            },
        ),
        (
            _("What happens to them"),
            {
                "fields": ("mode", "sharing", "ttl_s", "stale_s", "max_temperature", "capacity"),
                "description": _("A change acts within two seconds, on stored answers too."),
            },
        ),
        (
            _("How alike a question must be"),
            {"fields": ("accept_similarity", "verify_similarity", "is_strict")},
        ),
        (_("How many answers may be wrong"), {"fields": ("wrong_share", "check_share")}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[CacheRule]:
        rules: QuerySet[CacheRule] = super().get_queryset(request)
        return with_figures(rules)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        known = (extra_context or {}) | {
            "num_waiting": reembed.num_waiting(), "suspects": canary.suspects(), "num_failing": cases.num_failing(),
        }  # fmt: skip
        return super().changelist_view(request, known)

    @admin.display(description=_("matches"))
    def matches(self, rule: CacheRule) -> str:
        said = [
            rule.pattern,
            ", ".join(rule.keywords[:4]),
            *(f"≈ {example}" for example in rule.examples[:1]),
            rule.tenant,
            rule.model,
        ]
        return " · ".join(part for part in said if part) or str(_("every question"))

    @admin.display(description=_("mode"), ordering="mode")
    def what(self, rule: CacheRule) -> str:
        return f"{rule.get_mode_display()} · {rule.get_sharing_display()}"

    @admin.display(description=_("time to live"), ordering="ttl_s")
    def shown_ttl(self, rule: CacheRule) -> str:
        return shown_duration(rule.ttl_s)

    @admin.display(description=_("entries"), ordering="entry_count")
    def num_entries(self, rule: CacheRule) -> SafeString:
        url = reverse("admin:semcache_cacheentry_changelist")
        return format_html('<a href="{}?rule__id__exact={}">{}</a>', url, rule.pk, rule.entry_count)  # type: ignore[attr-defined]

    @admin.display(description=_("hits"), ordering="hit_count")
    def num_hits(self, rule: CacheRule) -> int:
        return rule.hit_count  # type: ignore[attr-defined, no-any-return]

    @admin.display(description=_("last hit"), ordering="last_hit_at")
    def last_hit(self, rule: CacheRule) -> str:
        return since(rule.last_hit_at)  # type: ignore[attr-defined]

    def save_model(self, request: HttpRequest, obj: CacheRule, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        service.forget_rules()

    def construct_change_message(  # type: ignore[override]
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> str:
        return changed(form)

    # A rule takes its answers with it. Django would load every one of them, for the page and for the deletion.

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        rules = list(objs)
        num_entries = CacheEntry.objects.filter(rule__in=rules).count()
        counted = {
            CacheRule._meta.verbose_name_plural: len(rules),
            CacheEntry._meta.verbose_name_plural: num_entries,
        }
        return [str(rule) for rule in rules], counted, set(), []

    def delete_model(self, request: HttpRequest, obj: CacheRule) -> None:
        self.delete_queryset(request, CacheRule.objects.filter(pk=obj.pk))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[CacheRule]) -> None:
        delete_rules(queryset)

    def get_urls(self) -> list[URLPattern]:
        own = [
            path("presets/", self.admin_site.admin_view(self.presets_view), name="semcache_add_presets"),
            path(
                "<int:rule_id>/loosen/",
                self.admin_site.admin_view(partial(loosen_view, pages=self)),
                name="semcache_loosen_rule",
            ),
            path("dry-run/", self.admin_site.admin_view(self.dry_run_view), name="semcache_dry_run"),
            path(
                "<int:rule_id>/tune/", self.admin_site.admin_view(self.tune_view), name="semcache_tune_rule"
            ),
            path(
                "import/",
                self.admin_site.admin_view(partial(import_view, self.admin_site)),
                name="semcache_import",
            ),
            path(
                "compare/",
                self.admin_site.admin_view(require_POST(partial(compare_view, self.admin_site))),
                name="semcache_compare",
            ),
            path(
                "compare/<int:comparison_id>/",
                self.admin_site.admin_view(partial(comparison_view, self.admin_site)),
                name="semcache_comparison",
            ),
            path("try.json", self.admin_site.admin_view(self.try_json_view), name="semcache_try_json"),
            path("try/", self.admin_site.admin_view(self.try_view), name="semcache_try_question"),
        ]
        return own + super().get_urls()

    @method_decorator(require_POST)
    def presets_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_add_permission(request):
            return forbidden()
        names = add_presets(request)
        if names:
            messages.success(request, _("Added: %s.") % ", ".join(names))
        else:
            messages.info(request, _("All presets are there already; nothing was changed."))
        return HttpResponseRedirect(reverse("admin:semcache_cacherule_changelist"))

    @method_decorator(require_POST)
    def dry_run_view(self, request: HttpRequest) -> HttpResponse:
        """The rule form as it is filled in; nothing is saved."""
        if not (self.has_change_permission(request) or self.has_add_permission(request)):
            return forbidden()
        known = request.GET.get("rule", "")
        saved = CacheRule.objects.filter(pk=known).first() if known.isdecimal() else None
        form = CacheRuleForm(request.POST, instance=saved)
        context = self.admin_site.each_context(request) | {
            "title": _("Dry run"), "opts": self.opts, "form": form,
            "tried": dry_run(form.instance) if form.is_valid() else None,
        }  # fmt: skip
        return TemplateResponse(request, "admin/semcache/cacherule/dry_run.html", context)

    @method_decorator(require_http_methods(["GET", "POST"]))
    def tune_view(self, request: HttpRequest, rule_id: int) -> HttpResponse:
        """GET shows what thresholds would do, POST applies one."""
        rule = get_object_or_404(CacheRule, pk=rule_id)
        is_change = request.method == "POST"
        if not (self.has_change_permission(request) if is_change else self.has_view_permission(request)):
            return forbidden()
        form = ThresholdForm(rule, request.POST or None)
        if is_change and form.is_valid():
            self._apply_threshold(request, rule, form.cleaned_data["accept_similarity"])
            return HttpResponseRedirect(request.path)
        seen = seen_by(rule)
        points = curve(seen, rule.verify_similarity)
        context = self.admin_site.each_context(request) | {
            "title": _("Threshold of “%s”") % rule.name, "opts": self.opts, "rule": rule, "form": form,
            "bars": bars(seen), "num_seen": len(seen), "points": points, "curve": [asdict(point) for point in points],
            "may_change": self.has_change_permission(request), "lowest": str(rule.verify_similarity), "step": str(STEP),
        }  # fmt: skip
        return TemplateResponse(request, "admin/semcache/cacherule/tune.html", context)

    def _apply_threshold(self, request: HttpRequest, rule: CacheRule, threshold: float) -> None:
        said = f"accept_similarity: {rule.accept_similarity} -> {threshold}"
        with transaction.atomic():
            rule.accept_similarity = threshold
            rule.save(update_fields=["accept_similarity", "updated_at"])
            self.log_change(request, rule, said)
        service.forget_rules()
        messages.success(request, _("Accepted from similarity %s now.") % threshold)

    def try_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            return forbidden()
        form = TryQuestionForm(request.GET or None)
        explanation, found = told(form.cleaned_data) if form.is_valid() else (None, None)
        context = self.admin_site.each_context(request) | {
            "title": _("Test a question"), "opts": self.opts, "form": form, "explanation": explanation,
            "found": found, "compared": compared(explanation) if explanation else (),
            "shared": shared(explanation) if explanation else "", "back": request.get_full_path(),
            "may_compare": may_be_answered(), **cases_of(form.cleaned_data if explanation else {}, found),
        }  # fmt: skip
        return TemplateResponse(request, "admin/semcache/cacherule/try_question.html", context)

    def try_json_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_view_permission(request):
            return forbidden()
        form = TryQuestionForm(request.GET)
        if not form.is_valid():
            return JsonResponse({"errors": form.errors}, status=400)
        may_read = request.user.has_perm("semcache.view_cacheentry")
        return JsonResponse(as_json(*told(form.cleaned_data), may_read=may_read))


def shown_duration(seconds: int) -> str:
    """The largest unit that gives a whole number: 600 -> "10 min"."""
    for size, unit in ((86_400, _("d")), (3600, _("h")), (60, _("min"))):
        if seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
