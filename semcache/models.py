"""What the semantic cache keeps: rules, entries, how entries are used, and which answers are being made.

Knows no users and no conversations: tenants, owners and scopes are opaque strings. The only door is `semcache.service`.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from pgvector.django import VectorField

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
        default=0.02,
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


class CacheEntry(models.Model):
    """One stored answer. `scope` is the SHA-256 of everything that must be equal for it to be served at all."""

    class Source(models.TextChoices):
        ANSWER = "answer", _("an answer to somebody")
        IMPORT = "import", _("brought in from a file")
        PROMOTION = "promotion", _("promoted from several people's answers")

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    question = models.TextField()
    answer = models.TextField()
    # Null for entries that only an exact match may serve. Of any size: the embedder decides.
    embedding = VectorField(null=True, blank=True)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="entries")
    sharing = models.CharField(max_length=16, choices=CacheRule.Sharing.choices)
    tenant = models.CharField(max_length=64)
    owner = models.CharField(max_length=64)
    model_revision = models.CharField(max_length=200)
    embedder = models.CharField(max_length=100, blank=True)
    generation = models.UUIDField(null=True, blank=True)
    token_ids = ArrayField(models.IntegerField(), default=list, blank=True)
    tokenizer = models.CharField(max_length=64, blank=True)
    num_tokens = models.PositiveIntegerField(default=0)
    # How long the generation took; 0 where none made it.
    took_ms = models.FloatField(default=0.0, db_default=0.0)
    # What its owner said and was answered earlier in the conversation, in turn, as far as the answer hangs on it.
    context = ArrayField(models.TextField(), default=list, db_default=[], blank=True)
    # False for answers about today, which end at midnight whatever a rule's window says, and for words that no model
    # made, which no model can make anew.
    may_be_stale = models.BooleanField(default=True, db_default=True)
    source = models.CharField(
        max_length=16, choices=Source.choices, default=Source.ANSWER, db_default=Source.ANSWER
    )
    is_pinned = models.BooleanField(default=False)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        verbose_name = _("cache entry")
        verbose_name_plural = _("cache entries")
        indexes: ClassVar = [
            models.Index(fields=["scope", "expires_at"], name="entry_in_scope"),
            models.Index(fields=["expires_at"], name="entry_expiry"),
            models.Index(fields=["tenant", "owner"], name="entry_owner"),
            # What waits for a new embedder is found without reading the table.
            models.Index(
                fields=["embedder", "id"], condition=Q(embedding__isnull=False), name="entry_embedder"
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["scope", "prompt_sha256"], name="one_entry_per_scope_and_prompt"),
            models.CheckConstraint(condition=Q(scope__regex=r"^[0-9a-f]{64}$"), name="entry_scope_is_sha256"),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="entry_expires_after_creation"
            ),
            models.CheckConstraint(condition=~Q(answer=""), name="entry_has_an_answer"),
        ]

    def __str__(self) -> str:
        return self.question[:80]

    @property
    def is_promotable(self) -> bool:
        """Whether it is an own answer under a rule that makes such answers public."""
        return self.sharing == "private" and self.rule.sharing == "promoted"


class CacheEntryUse(models.Model):
    """When and how often an entry was served. Unlogged in the database: a crash loses only recency."""

    # The database has a foreign key of its own that deletes with the entry (Django knows none such): entries leave by
    # plain SQL in batches.
    entry = models.OneToOneField(
        CacheEntry, on_delete=models.CASCADE, primary_key=True, related_name="use", db_constraint=False
    )
    last_used_at = models.DateTimeField(db_index=True)
    hits = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.hits} hits"


class CacheFlight(models.Model):
    """An answer that is being made for everybody who asks the same now. Unlogged: it means nothing after a crash.

    `aboard` are the generations that wait for it, the leader's own among them until it is stopped.
    """

    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    leader = models.UUIDField(unique=True)
    aboard = ArrayField(models.UUIDField())
    is_up = models.BooleanField(default=False)
    is_landed = models.BooleanField(default=False)
    expires_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "prompt_sha256"], name="one_flight_per_scope_and_prompt"
            ),
        ]

    def __str__(self) -> str:
        return f"{len(self.aboard)} wait for {self.leader}"


class CacheLook(models.Model):
    """What one look-up decided, for a week at most. Unlogged: a crash loses it, and nothing else.

    `question` is empty where the words are not this table's to keep; `agreement` says how far the model's answer was
    what a shadow rule would have served.
    """

    id = models.BigAutoField(primary_key=True)
    asked_at = models.DateTimeField(db_index=True)
    # No constraint: rows are written late, and the rule may be gone by then.
    rule = models.ForeignKey(
        CacheRule, on_delete=models.SET_NULL, null=True, related_name="looks", db_constraint=False
    )
    outcome = models.CharField(max_length=16)
    reason = models.CharField(max_length=32)
    sharing = models.CharField(max_length=16)
    tenant = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    question = models.TextField(blank=True)
    neighbour = models.BigIntegerField(null=True)
    neighbour_question = models.TextField(blank=True)
    similarity = models.FloatField(null=True)
    is_guarded = models.BooleanField(default=False)
    score = models.FloatField(null=True)
    agreement = models.FloatField(null=True)
    # Of the question's own answer, with which the row is erased; null where the words are everybody's.
    generation = models.UUIDField(null=True)
    took_ms = models.FloatField(default=0.0)

    class Meta:
        verbose_name = _("look-up")
        verbose_name_plural = _("look-ups")

    def __str__(self) -> str:
        return f"{self.outcome} ({self.reason})"


class CacheComplaint(models.Model):
    """Two questions, as hashes, of which the first must never again be answered with the second's stored answer."""

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=64)
    asked_sha256 = models.CharField(max_length=64)
    # "" where only this very question is meant.
    reading_sha256 = models.CharField(max_length=64)
    stored_sha256 = models.CharField(max_length=64)
    why = models.CharField(max_length=16)
    # The answers to both questions in somebody's own scope: the pair is erased with either. [] in shared scopes.
    generations = ArrayField(models.UUIDField(), default=list, db_default=[])
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("complaint")
        verbose_name_plural = _("complaints")
        indexes: ClassVar = [models.Index(fields=["scope", "stored_sha256"], name="complaint_of_entry")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "asked_sha256", "stored_sha256"], name="one_complaint_per_pair"
            ),
        ]

    def __str__(self) -> str:
        return self.why


class CacheCheck(models.Model):
    """Whether one served answer was right, as somebody said or a comparison found: the evidence of the budget."""

    class Kind(models.TextChoices):
        SAMPLED = "sampled", _("made once more and compared")
        THUMB = "thumb", _("a thumb")
        STAFF = "staff", _("marked by staff")

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="checks")
    # Unique where one served answer is judged: a comparison that is delivered twice counts once.
    generation = models.UUIDField(null=True, unique=True)
    # The entry may be gone by now.
    entry = models.BigIntegerField(null=True)
    kind = models.CharField(max_length=16, choices=Kind.choices)
    is_wrong = models.BooleanField()
    # Of the two questions.
    similarity = models.FloatField(null=True)
    score = models.FloatField(null=True)
    checked_at = models.DateTimeField()

    class Meta:
        verbose_name = _("check")
        verbose_name_plural = _("checks")
        indexes: ClassVar = [models.Index(fields=["rule", "checked_at"], name="check_of_rule")]

    def __str__(self) -> str:
        return f"{self.kind}: {'wrong' if self.is_wrong else 'right'}"


class CacheRuleHour(models.Model):
    """What one rule did within one hour: look-ups, hits, and what the hits saved."""

    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    looks = models.PositiveBigIntegerField(default=0)
    exact_hits = models.PositiveBigIntegerField(default=0)
    semantic_hits = models.PositiveBigIntegerField(default=0)
    stale_hits = models.PositiveBigIntegerField(default=0)
    tokens_saved = models.PositiveBigIntegerField(default=0)
    ms_saved = models.FloatField(default=0.0)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["rule", "hour"], name="one_row_per_rule_and_hour")
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H}h: {self.looks} look-ups"


class CachePromotion(models.Model):
    """A question on its way from its askers' own scopes to everybody's, or there already.

    One place in each of the three lists belongs to one asker: a salted hash of who it is, the entry with their own
    answer, and the generation that made it, by which it is found when they are erased.
    """

    id = models.BigAutoField(primary_key=True)
    scope = models.CharField(max_length=64)
    prompt_sha256 = models.CharField(max_length=64)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="promotions")
    askers = ArrayField(models.CharField(max_length=64), default=list)
    entries = ArrayField(models.BigIntegerField(), default=list)
    generations = ArrayField(models.UUIDField(null=True), default=list)
    created_at = models.DateTimeField()
    promoted_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("promotion")
        verbose_name_plural = _("promotions")
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["scope", "prompt_sha256"], name="one_promotion_per_scope_and_prompt"
            ),
        ]

    def __str__(self) -> str:
        return f"{len(self.askers)} asked"


class CacheImport(models.Model):
    """Questions and answers from a file, stored by a worker in batches; it goes on where it was interrupted."""

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")

    id = models.BigAutoField(primary_key=True)
    rule = models.ForeignKey(CacheRule, on_delete=models.CASCADE, related_name="imports")
    tenant = models.CharField(_("business line"), max_length=64, blank=True)
    system_prompt = models.TextField(_("system prompt"), blank=True)
    file_name = models.CharField(max_length=200)
    # [[question, answer], ...]; emptied when all are stored.
    rows = models.JSONField(default=list)
    num_rows = models.PositiveIntegerField()
    num_done = models.PositiveIntegerField(default=0)
    num_refused = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    trouble = models.TextField(blank=True)
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("import")
        verbose_name_plural = _("imports")

    def __str__(self) -> str:
        return self.file_name
