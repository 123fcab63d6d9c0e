"""What staff say of a regression case, on a page, by a program or in a file: checked in one place.

A stored answer that a case is saved from is looked up by its entry, so that the case goes when that one is erased.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from semcache.models import CacheCase, CacheEntry, CacheRule
from semcache.quality.cases import MAX_CASES, definition_of
from semcache.text.normalize import clean

FIELDS = (
    "question", "tenant", "owner", "model", "expected", "rule", "stored_question", "answer_part", "note",
)  # fmt: skip
# Words of stored questions and answers, for those who may see these.
OF_ENTRIES = ("stored_question", "answer_part")
Expected = CacheCase.Expected
AREA = forms.Textarea(attrs={"rows": 3, "cols": 80})


class CacheCaseForm(forms.ModelForm):
    """`entry`, where it is given, is the stored answer that the case was saved from."""

    question = forms.CharField(label=_("Question"), max_length=20_000, widget=AREA)
    entry = forms.IntegerField(required=False, widget=forms.HiddenInput, label="")

    class Meta:
        model = CacheCase
        fields = FIELDS
        widgets: ClassVar = {"stored_question": AREA, "answer_part": AREA}

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._entry: CacheEntry | None = None
        if "rule" in self.fields:  # not for those who may only look
            self.fields["rule"].widget = forms.Select(choices=_rules(self.instance.rule))

    def clean_question(self) -> str:
        question = clean(self.cleaned_data["question"]).replace("\r\n", "\n").strip()
        if not question:
            raise ValidationError(_("This field is required."), code="required")
        return question

    def clean_stored_question(self) -> str:
        return clean(self.cleaned_data["stored_question"]).replace("\r\n", "\n").strip()

    def clean_answer_part(self) -> str:
        return clean(self.cleaned_data["answer_part"]).replace("\r\n", "\n").strip()

    def clean_entry(self) -> int | None:
        entry_id: int | None = self.cleaned_data["entry"]
        if entry_id is not None:
            # Who erases the answer at this moment waits for this row, and then deletes the case, too.
            self._entry = CacheEntry.objects.select_for_update().filter(pk=entry_id).first()
            if self._entry is None:
                raise ValidationError(_("The stored answer is not there any more."))
        return entry_id

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        told = {name: values.get(name, getattr(self.instance, name)) for name in FIELDS}
        names_an_answer = bool(told["stored_question"] or told["answer_part"])
        if told["expected"] == Expected.NEVER and not names_an_answer:
            self.add_error("expected", _("Say which stored question or which words of an answer."))
        if told["expected"] in (Expected.MISS, Expected.BYPASS) and names_an_answer:
            self.add_error("expected", _("No stored answer is served then, so none can be named."))
        if not self.errors:
            self._refuse_twice(told)
        return values

    def _refuse_twice(self, told: dict[str, Any]) -> None:
        others = CacheCase.objects.exclude(pk=self.instance.pk)
        if others.filter(definition=definition_of(CacheCase(**told))).exists():
            raise ValidationError(_("There is such a case already."), code="unique")
        if self.instance.pk is None and others.count() >= MAX_CASES:
            raise ValidationError(_("There are %d cases already; delete some first.") % MAX_CASES)

    def save(self, commit: bool = True) -> CacheCase:
        """One that asks or expects something else than before has never been run."""
        case: CacheCase = super().save(commit=False)
        definition = definition_of(case)
        if definition != case.definition:
            case.definition, case.state, case.problems, case.rules_key = (
                definition,
                CacheCase.State.NEW,
                [],
                "",
            )
            case.got_outcome, case.got_reason, case.got_rule, case.got_entry = "", "", "", None
            case.ran_at = None
        if self._entry is not None:
            case.generation = self._entry.generation
        if case.pk is None:
            case.created_at = Now()
        if commit:
            case.save()
        return case


def _rules(own: str) -> list[tuple[str, Any]]:
    """Those that there are, and the one that the case names, whether or not it is there."""
    names = [*CacheRule.objects.order_by("priority", "id").values_list("name", flat=True)]
    return [("", _("any")), *((name, name) for name in dict.fromkeys([*names, *filter(None, [own])]))]
