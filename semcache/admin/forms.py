"""The forms of the admin: every bad value is named at its field before anything is saved or deleted."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from django import forms
from django.contrib.postgres.forms import SimpleArrayField
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from semcache.admin.audit import hashed
from semcache.admin.evict import Chosen
from semcache.models import CacheEntry, CacheRule
from semcache.rules.policy import MAX_EXAMPLES, BadPattern, compile_pattern
from semcache.service import MAX_ANSWER_CHARS
from semcache.text.normalize import canonical, clean
from semcache.text.wording import MAX_SEMANTIC_CHARS

# Whatever is wrong with a number of seconds, the message says what a right one looks like.
_IN_SECONDS = _("Whole seconds without a unit, from 1 to 315360000 (ten years): 600 is ten minutes.")

_GROUP_NAMES = re.compile(r"\(\?P?<(\w+)>")


class CacheRuleForm(forms.ModelForm):
    # A question may hold commas, so each has a line of its own.
    examples = SimpleArrayField(
        forms.CharField(max_length=500, required=False),
        delimiter="\n", max_length=MAX_EXAMPLES, required=False,
        label=CacheRule._meta.get_field("examples").verbose_name,
        help_text=CacheRule._meta.get_field("examples").help_text,
        widget=forms.Textarea(attrs={"rows": 4, "cols": 80}),
    )  # fmt: skip

    class Meta:
        error_messages: ClassVar = {
            "ttl_s": dict.fromkeys(("required", "invalid", "min_value", "max_value"), _IN_SECONDS)
        }
        model = CacheRule
        fields = (
            "name", "is_enabled", "priority", "pattern", "keywords", "examples", "example_similarity", "tenant",
            "model", "mode", "sharing", "ttl_s", "stale_s", "accept_similarity", "verify_similarity", "is_strict",
            "max_temperature", "capacity", "wrong_share", "check_share", "tags",
        )  # fmt: skip

    def clean_pattern(self) -> str:
        pattern: str = self.cleaned_data["pattern"]
        try:
            compile_pattern(pattern)
        except BadPattern as problem:
            raise ValidationError(
                _("Not a valid RE2 pattern: %(why)s"), params={"why": str(problem)}
            ) from None
        # RE2 lets it pass, other engines do not; nobody means it.
        names = _GROUP_NAMES.findall(pattern)
        if len(set(names)) < len(names):
            raise ValidationError(_("Two groups of the pattern have the same name."))
        return pattern

    def clean_keywords(self) -> list[str]:
        keywords = [clean(keyword).strip() for keyword in self.cleaned_data["keywords"]]
        return list(dict.fromkeys(keyword for keyword in keywords if keyword))

    def clean_examples(self) -> list[str]:
        examples = [canonical(example) for example in self.cleaned_data["examples"]]
        return list(dict.fromkeys(example for example in examples if example))

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        accept, verify = values.get("accept_similarity"), values.get("verify_similarity")
        if accept is not None and verify is not None and verify > accept:
            self.add_error("verify_similarity", _("Must not be above the similarity that is accepted."))
        return values


class ThresholdForm(forms.Form):
    """The similarity from which a rule serves; not below the one from which it looks more closely."""

    accept_similarity = forms.FloatField(max_value=1.0)

    def __init__(self, rule: CacheRule, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lowest = rule.verify_similarity

    def clean_accept_similarity(self) -> float:
        threshold: float = self.cleaned_data["accept_similarity"]
        if threshold < self._lowest:
            raise ValidationError(_("Must not be below the similarity from which is verified."))
        return threshold


class TryQuestionForm(forms.Form):
    """A question to try the rules on, as somebody of a business line would ask it of a model."""

    text = forms.CharField(
        label=_("Question"), max_length=20_000, widget=forms.Textarea(attrs={"rows": 3, "cols": 80})
    )
    tenant = forms.CharField(label=_("Business line"), max_length=64, required=False)
    model = forms.CharField(label=_("Model"), max_length=200, required=False)
    owner = forms.CharField(
        label=_("Asked by"), max_length=64, required=False,
        help_text=_("A creator as the entries name them, such as user:7; empty is somebody new."),
    )  # fmt: skip
    stored = forms.CharField(
        label=_("Compare with the question"), max_length=MAX_SEMANTIC_CHARS, required=False,
        help_text=_("What the guard says about serving that question's answer."),
        widget=forms.Textarea(attrs={"rows": 2, "cols": 80}),
    )  # fmt: skip


class CacheEntryForm(forms.ModelForm):
    """An answer's text. `answer_sha256` is the text that the page showed: one that was refreshed since is not lost."""

    answer_sha256 = forms.CharField(widget=forms.HiddenInput, required=False, label="")

    class Meta:
        model = CacheEntry
        fields = ("answer",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["answer_sha256"] = hashed(self.instance.answer)
        if "answer" in self.fields:  # not for those who may only look
            self.fields["answer"].strip = False  # type: ignore[attr-defined]

    @property
    def is_edited(self) -> bool:
        """Not what Django calls changed, which compares line ends too."""
        return bool(self.cleaned_data["answer"] != self.initial["answer"])

    def clean_answer(self) -> str:
        # A browser sends every line end as CR LF; an answer that nobody touched must not differ.
        answer = clean(self.cleaned_data["answer"]).replace("\r\n", "\n")
        if not answer.strip():
            raise ValidationError(_("An answer must say something."))
        if len(answer) > MAX_ANSWER_CHARS:
            raise ValidationError(_("Too long for the cache."))
        return answer

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("answer_sha256") != self.initial["answer_sha256"]:
            self.add_error(
                "answer", _("The stored answer has changed since this page was loaded. Load it again.")
            )
        return values


class BulkEvictForm(forms.Form):
    """Which answers go together. Nothing chosen is not "all": that would be one click from an empty cache."""

    rule = forms.ModelChoiceField(CacheRule.objects.all(), label=_("Rule"), required=False)
    model_revision = forms.CharField(label=_("Model"), max_length=200, required=False)
    tenant = forms.CharField(label=_("Business line"), max_length=64, required=False)
    owner = forms.CharField(label=_("Creator"), max_length=64, required=False)
    older_than_h = forms.IntegerField(
        label=_("At least this many hours old"), min_value=0, max_value=100_000, required=False
    )

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if not self.errors and all(value in (None, "") for value in values.values()):
            raise ValidationError(_("Choose at least one thing that the answers have in common."))
        return values

    def chosen(self) -> Chosen:
        values = self.cleaned_data
        hours = values["older_than_h"]
        return Chosen(
            rule_id=values["rule"].pk if values["rule"] else None,
            model_revision=values["model_revision"],
            tenant=values["tenant"],
            owner=values["owner"],
            older_than_s=None if hours is None else hours * 3600,
        )
