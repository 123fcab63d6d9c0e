"""Questions with what the cache must do with them."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class CacheCase(models.Model):
    """A question and what is expected of the cache, with how it went when it was last asked.

    Texts are staff's own; `owner` is whose question it is tried as, and `generation` made the stored answer that it was
    saved from: with either one's erasure the case goes. `rules_key` names the rules that it was last judged by.
    """

    class Expected(models.TextChoices):
        HIT = "hit", _("a stored answer is served")
        MISS = "miss", _("the model answers")
        BYPASS = "bypass", _("the cache stays out of it")
        NEVER = "never", _("this answer is never served")

    class State(models.TextChoices):
        NEW = "new", _("never run")
        PASSED = "passed", _("passed")
        FAILED = "failed", _("failed")

    id = models.BigAutoField(primary_key=True)
    question = models.TextField(_("question"))
    tenant = models.CharField(
        _("business line"), max_length=64, blank=True, help_text=_("As the entries name it, such as 1.")
    )
    owner = models.CharField(
        _("asked by"), max_length=64, blank=True,
        help_text=_("A creator as the entries name them, such as user:7; empty is somebody new."),
    )  # fmt: skip
    model = models.CharField(_("model"), max_length=200, blank=True)
    expected = models.CharField(_("expected"), max_length=16, choices=Expected.choices)
    # By name, as in a file of cases: a rule may be deleted and made anew, on another site, too.
    rule = models.CharField(_("rule"), max_length=100, blank=True, help_text=_("The one that has to decide."))
    stored_question = models.TextField(
        _("stored question"), blank=True, help_text=_("The answer to exactly this stored question.")
    )
    answer_part = models.TextField(
        _("words of the answer"), blank=True, help_text=_("The stored answer has these words in it.")
    )
    note = models.CharField(_("note"), max_length=200, blank=True, help_text=_("Why this case is kept."))
    generation = models.UUIDField(null=True, editable=False)
    # SHA-256 of everything above that says what is asked and expected.
    definition = models.CharField(max_length=64, editable=False)
    state = models.CharField(
        _("state"), max_length=16, choices=State.choices, default=State.NEW, editable=False
    )
    problems = ArrayField(models.CharField(max_length=16), default=list, editable=False)
    got_outcome = models.CharField(max_length=16, blank=True, editable=False)
    got_reason = models.CharField(max_length=32, blank=True, editable=False)
    got_rule = models.CharField(max_length=100, blank=True, editable=False)
    got_entry = models.BigIntegerField(null=True, editable=False)
    rules_key = models.CharField(max_length=64, blank=True, editable=False)
    ran_at = models.DateTimeField(_("last run"), null=True, editable=False)
    created_at = models.DateTimeField(editable=False)

    class Meta:
        verbose_name = _("regression case")
        verbose_name_plural = _("regression cases")
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["definition"], name="one_case_per_definition"),
            models.CheckConstraint(
                condition=Q(expected__in=["hit", "never"]) | Q(stored_question="", answer_part=""),
                name="case_names_an_answer_only_where_one_is_served",
            ),
            models.CheckConstraint(
                condition=~Q(expected="never") | ~Q(stored_question="") | ~Q(answer_part=""),
                name="case_says_what_is_never_served",
            ),
        ]

    def __str__(self) -> str:
        # Stands in the audit log, which outlives the case and must not keep its words.
        return f"{self.pk}: {self.expected}"
