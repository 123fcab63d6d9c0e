"""The rule form of the admin: every bad value is named at its field before anything is saved."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from semcache.models import CacheRule
from semcache.normalize import clean
from semcache.policy import BadPattern, compile_pattern


class CacheRuleForm(forms.ModelForm):
    class Meta:
        model = CacheRule
        fields = (
            "name", "is_enabled", "priority", "pattern", "keywords", "tenant", "model", "mode", "sharing", "ttl_s",
            "stale_s", "accept_similarity", "verify_similarity", "max_temperature", "capacity", "tags",
        )  # fmt: skip

    def clean_pattern(self) -> str:
        pattern: str = self.cleaned_data["pattern"]
        try:
            compile_pattern(pattern)
        except BadPattern as problem:
            raise ValidationError(
                _("Not a valid RE2 pattern: %(why)s"), params={"why": str(problem)}
            ) from None
        return pattern

    def clean_keywords(self) -> list[str]:
        keywords = [clean(keyword).strip() for keyword in self.cleaned_data["keywords"]]
        return list(dict.fromkeys(keyword for keyword in keywords if keyword))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        accept, verify = values.get("accept_similarity"), values.get("verify_similarity")
        if accept is not None and verify is not None and verify > accept:
            self.add_error("verify_similarity", _("Must not be above the similarity that is accepted."))
        return values


class TryQuestionForm(forms.Form):
    """A question to try the rules on, as somebody of a business line would ask it of a model."""

    text = forms.CharField(
        label=_("Question"), max_length=20_000, widget=forms.Textarea(attrs={"rows": 3, "cols": 80})
    )
    tenant = forms.CharField(label=_("Business line"), max_length=64, required=False)
    model = forms.CharField(label=_("Model"), max_length=200, required=False)
    stored = forms.CharField(
        label=_("Compare with the question"), max_length=20_000, required=False,
        help_text=_("What the guard says about serving that question's answer."),
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
    )  # fmt: skip
