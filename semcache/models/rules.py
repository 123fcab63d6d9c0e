"""Which questions may be answered from the cache, and how the operator says so."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

TEN_YEARS_S = 315_360_000


class CacheRule(models.Model):
    """Which questions may be answered from the cache, how alike they must be, and for how long.

    Rules are tried by priority, lowest first; at equal priority off and exact win, then the more specific matcher,
    then the lower id. A rule without any matcher matches every question.
    """

    class Mode(models.TextChoices):
        OFF = "off", _("never cache")
        EXACT = "exact", _("exact match only")
        SEMANTIC = "semantic", _("semantic")
        SHADOW = "shadow", _("shadow (look, never serve)")

    class Sharing(models.TextChoices):
        PRIVATE = "private", _("the user's own")
        TENANT = "tenant", _("business line")
        PROMOTED = "promoted", _("public after promotion")
        PUBLIC = "public", _("public")

    class Tightened(models.TextChoices):
        """What a rule does of its own accord once too many of its answers were wrong."""

        NO = "", _("no")
        VERIFY = "verify", _("every answer by meaning needs a second opinion")
        EXACT = "exact", _("exact match only")

    name = models.CharField(_("name"), max_length=100, unique=True)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    priority = models.IntegerField(_("priority"), default=100, help_text=_("Lowest number is tried first."))
    pattern = models.CharField(
        _("pattern"),
        max_length=1000,
        blank=True,
        help_text=_("RE2 regular expression, searched in the question, case ignored."),
    )
    keywords = ArrayField(
        models.CharField(max_length=100),
        default=list,
        blank=True,
        verbose_name=_("keywords"),
        help_text=_(
            "Any of these in the question matches; it counts from the start of a word, so “order” finds “orders”."
        ),
    )
    examples = ArrayField(
        models.CharField(max_length=500),
        default=list,
        db_default=[],
        blank=True,
        verbose_name=_("example questions"),
        help_text=_("One in a line. A question that is near one of them matches, whatever its words."),
    )
    example_similarity = models.FloatField(
        _("near from similarity"),
        default=0.9,
        db_default=0.9,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_("How alike a question and an example must be. Try it with “Test a question”."),
    )
    tenant = models.CharField(_("business line"), max_length=64, blank=True)
    model = models.CharField(_("model"), max_length=200, blank=True)
    mode = models.CharField(_("mode"), max_length=16, choices=Mode.choices, default=Mode.SEMANTIC)
    sharing = models.CharField(_("sharing"), max_length=16, choices=Sharing.choices, default=Sharing.PRIVATE)
    ttl_s = models.PositiveIntegerField(
        _("time to live (s)"),
        default=86_400,
        validators=[MinValueValidator(1), MaxValueValidator(TEN_YEARS_S)],
    )
    stale_s = models.PositiveIntegerField(_("stale while revalidating (s)"), default=0)
    accept_similarity = models.FloatField(
        _("accept from similarity"),
        default=0.95,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_(
            "Measured with multilingual-e5-small on 300 pairs made to deceive caches: of 155 different pairs the guard "
            "let none through at any threshold (similarity alone let 63 pass at 0.95), of 145 equal pairs 63 were "
            "served at 0.95 and 57 at 0.97. Another embedder needs another number."
        ),
    )
    verify_similarity = models.FloatField(
        _("verify from similarity"),
        default=0.90,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_(
            "From here up to the accepted similarity a second opinion is asked; without one nothing is served there."
        ),
    )
    is_strict = models.BooleanField(
        _("strict"),
        default=False,
        db_default=False,
        help_text=_(
            "Only what the guard finds no difference in is served by meaning, not even a word without its equal: "
            "neither a second opinion nor several agreeing answers can overrule it."
        ),
    )
    max_temperature = models.FloatField(
        _("highest temperature"), default=1.0, validators=[MinValueValidator(0.0), MaxValueValidator(2.0)]
    )
    capacity = models.PositiveIntegerField(_("capacity"), default=10_000, validators=[MinValueValidator(1)])
    wrong_share = models.FloatField(
        _("wrong answers allowed"),
        default=0.01,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_("As a share of the answers that this rule serves; past it the rule tightens itself."),
    )
    check_share = models.FloatField(
        _("answers checked"),
        default=0.0,
        validators=[MinValueValidator(0.0), MaxValueValidator(1.0)],
        help_text=_(
            "The share of answers served by meaning that the model makes once more, unseen, to compare them. 0: none."
        ),
    )
    tightened = models.CharField(
        _("tightened"),
        max_length=16,
        choices=Tightened.choices,
        default=Tightened.NO,
        blank=True,
        editable=False,
    )
    tightened_at = models.DateTimeField(null=True, editable=False)
    tags = ArrayField(models.CharField(max_length=50), default=list, blank=True, verbose_name=_("tags"))
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name = _("cache rule")
        verbose_name_plural = _("cache rules")
        ordering: ClassVar = ["priority", "id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(ttl_s__gte=1, ttl_s__lte=TEN_YEARS_S), name="rule_ttl_in_range"
            ),
            models.CheckConstraint(
                condition=Q(verify_similarity__gte=0, accept_similarity__lte=1)
                & Q(verify_similarity__lte=F("accept_similarity")),
                name="rule_thresholds_in_order",
            ),
        ]

    def __str__(self) -> str:
        return self.name
