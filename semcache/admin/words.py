"""The cache's stable codes in an operator's words."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from semcache.decision import Outcome, Reason
from semcache.text.admission import WhyPrivate

OUTCOMES: dict[Outcome, Any] = {
    Outcome.HIT_EXACT: _("Hit: the same words"),
    Outcome.HIT_SEMANTIC: _("Hit: the same meaning"),
    Outcome.MISS: _("Miss"),
    Outcome.BYPASS: _("The cache stays out of it"),
}
REASONS: dict[Reason, Any] = {
    Reason.EXACT: _("an answer to the same words is stored"),
    Reason.SIMILAR: _("alike enough, and the guard found no difference"),
    Reason.STALE: _("its time is over, but the rule serves it while it is made anew"),
    Reason.VERIFIED: _("alike, and the verifier says that both mean the same"),
    Reason.NOT_STORED: _("these words are not stored, and meaning is not looked at here"),
    Reason.NO_NEIGHBOUR: _("nothing is stored where this question may look"),
    Reason.BELOW_THRESHOLD: _("the nearest stored question is not alike enough"),
    Reason.GREY_ZONE: _("alike, but not enough without a second opinion, and nobody gave one"),
    Reason.DOUBTED: _("alike, but the verifier says that they mean different things"),
    Reason.VERIFIER_FAILED: _("the verifier failed"),
    Reason.GUARDED: _("alike enough, but the guard found a difference"),
    Reason.TIGHTENED: _("the rule has tightened itself, because too many of its answers were wrong"),
    Reason.SHADOW: _("the rule only looks and never serves"),
    Reason.EMPTY: _("the question is empty"),
    Reason.NO_RULE: _("no rule matches"),
    Reason.RULE_OFF: _("the rule says never"),
    Reason.TEMPERATURE: _("the temperature is above the rule's limit"),
    Reason.OF_THIS_MOMENT: _("the answer is right for this moment only"),
    Reason.NOT_ASKED: _("the caller wants no stored answer"),
    Reason.TIMEOUT: _("it took too long"),
    Reason.EMBEDDER_FAILED: _("the embedder failed"),
    Reason.STORE_FAILED: _("the database failed"),
    Reason.RESTING: _("the database failed repeatedly and is left alone for a while"),
}
CHECKS: dict[str, Any] = {
    "numbers": _("numbers and units"),
    "dates": _("dates"),
    "negation": _("negation"),
    "opposites": _("opposites"),
    "persons": _("persons"),
    "question": _("what is asked for"),
    "direction": _("direction"),
    "names": _("names and places"),
    "content": _("the other words"),
    "context": _("what was said before"),
    "length": _("length (of shared answers)"),
}
PRIVATE: dict[WhyPrivate, Any] = {
    WhyPrivate.PERSONAL: _("it speaks of somebody, or holds what leads to a person"),
    WhyPrivate.INSTRUCTS: _("it says what the answer has to be"),
    WhyPrivate.LINK: _("it carries a link"),
    WhyPrivate.ODD_TEXT: _("its length, marks or repetitions are odd"),
}
STEPS: dict[str, Any] = {
    "rule": _("choose the rule"),
    "exact": _("look for the same words"),
    "embed": _("embed"),
    "nearest": _("find the nearest"),
    "guard": _("guard"),
    "verify": _("verifier"),
}


def worded(codes: dict[Any, Any], code: Any) -> str:
    """The code itself where nobody has found words for it yet."""
    return str(codes.get(code, code))
