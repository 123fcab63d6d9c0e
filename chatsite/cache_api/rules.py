"""Rules of the cache: list, make, read, change, delete, order, presets, a dry run, statistics."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any
from uuid import uuid4

from django.forms.models import model_to_dict
from django.http import HttpRequest
from ninja import Field, Router, Status

from chatsite.cache_api.schemas import (
    AddedOut,
    DryRunIn,
    DryRunOut,
    OrderIn,
    RuleChange,
    RuleIn,
    RuleOut,
    StatisticsOut,
)
from chatsite.cache_api.staff import allow, in_thread, refused
from chatsite.db import run_in_db
from chatsite.errors import NotFound
from chatsite.json_types import RowId
from chatsite.v1.errors import ApiError
from semcache.admin import ruling
from semcache.admin.audit import note_row
from semcache.admin.dryrun import dry_run
from semcache.admin.figures import with_figures
from semcache.admin.forms import CacheRuleForm
from semcache.models import CacheRule
from semcache.quality import budget, hours
from semcache.quality.budget_estimate import Estimate

router = Router()
FIELDS = CacheRuleForm.Meta.fields
Hours = Annotated[int, Field(ge=1, le=24 * 30)]


@router.get("", response=list[RuleOut])
async def list_cache_rules(request: HttpRequest) -> list[dict[str, Any]]:
    """All rules in the order in which they are tried, each with what it did."""
    return await run_in_db(_listed, request)


@router.post("", response={201: RuleOut})
async def make_cache_rule(request: HttpRequest, body: RuleIn) -> Status[dict[str, Any]]:
    """A new rule; in force everywhere within two seconds."""
    return Status(201, await run_in_db(_saved, request, None, body.dict(exclude_unset=True)))


@router.put("/order", response=list[RuleOut])
async def order_cache_rules(request: HttpRequest, body: OrderIn) -> list[dict[str, Any]]:
    """Gives all rules new priorities: the first in the list is tried first."""
    return await run_in_db(_ordered, request, body.ids)


@router.post("/presets", response=AddedOut)
async def add_cache_presets(request: HttpRequest) -> dict[str, Any]:
    """Adds those of the rules that come along which are missing."""
    return {"added": await run_in_db(_preset, request)}


@router.post("/dry-run", response=DryRunOut)
async def dry_run_cache_rule(request: HttpRequest, body: DryRunIn) -> dict[str, Any]:
    """What a rule would have matched of the last 1,000 questions; nothing is saved."""
    return await in_thread(_tried, request, body.dict(exclude_unset=True))


@router.get("/{rule_id}", response=RuleOut)
async def get_cache_rule(request: HttpRequest, rule_id: RowId) -> dict[str, Any]:
    """One rule with what it did."""
    return await run_in_db(_one, request, rule_id)


@router.patch("/{rule_id}", response=RuleOut)
async def change_cache_rule(request: HttpRequest, rule_id: RowId, body: RuleChange) -> dict[str, Any]:
    """Changes the given fields; in force everywhere within two seconds, on stored answers too."""
    return await run_in_db(_saved, request, rule_id, body.dict(exclude_unset=True))


@router.delete("/{rule_id}", response={204: None})
async def delete_cache_rule(request: HttpRequest, rule_id: RowId) -> Status[None]:
    """Deletes a rule and its stored answers."""
    await run_in_db(_deleted, request, rule_id)
    return Status(204, None)


@router.get("/{rule_id}/statistics", response=StatisticsOut)
async def get_cache_rule_statistics(
    request: HttpRequest, rule_id: RowId, hours: Hours = 48
) -> dict[str, Any]:
    """A rule hour by hour, and the share of its answers that were wrong, as far as that is known."""
    return await run_in_db(_statistics, request, rule_id, hours)


def _listed(request: HttpRequest) -> list[dict[str, Any]]:
    allow(request, "view_cacherule")
    return [_shown(rule) for rule in with_figures(CacheRule.objects.order_by("priority", "id"))]


def _one(request: HttpRequest, rule_id: int) -> dict[str, Any]:
    allow(request, "view_cacherule")
    rule = with_figures(CacheRule.objects.filter(pk=rule_id)).first()
    if rule is None:
        raise NotFound("There is no such rule.")
    return _shown(rule)


def _saved(request: HttpRequest, rule_id: int | None, given: dict[str, Any]) -> dict[str, Any]:
    allow(request, "add_cacherule" if rule_id is None else "change_cacherule")
    form = _form(rule_id, given)
    if not form.is_valid():
        raise refused(form)
    rule = ruling.save_rule(request, form)
    return _shown(with_figures(CacheRule.objects.filter(pk=rule.pk)).get())


def _ordered(request: HttpRequest, ids: list[int]) -> list[dict[str, Any]]:
    allow(request, "change_cacherule")
    try:
        ruling.order_rules(request, ids)
    except ruling.NotAllRules:
        raise ApiError(409, "rules_changed", "ids must name every rule once: read the rules again.") from None
    return _listed(request)


def _preset(request: HttpRequest) -> list[str]:
    allow(request, "add_cacherule")
    return ruling.add_presets(request)


def _tried(request: HttpRequest, given: dict[str, Any]) -> dict[str, Any]:
    allow(request, "change_cacherule")
    # What is not saved needs no name, and none that is free; but the form wants one.
    form = _form(given.pop("rule", None), given | {"name": str(uuid4())})
    if not form.is_valid():
        raise refused(form)
    return asdict(dry_run(form.instance))


def _deleted(request: HttpRequest, rule_id: int) -> None:
    allow(request, "delete_cacherule")
    rule = _row(rule_id)
    note_row(request, rule, f"deleted: {rule.name}", is_deletion=True)
    ruling.delete_rules(CacheRule.objects.filter(pk=rule_id))


def _statistics(request: HttpRequest, rule_id: int, num_hours: int) -> dict[str, Any]:
    allow(request, "view_cacherule")
    rule = _row(rule_id)
    found = budget.evidence([rule.pk]).get(rule.pk, budget.NO_EVIDENCE)
    listed = [{"hour": hour} | asdict(tally) for hour, tally in hours.last_hours(rule.pk, num_hours)]
    return {"hours": listed, "sampled": _wrong(found.sampled), "reported": _wrong(found.reported)}


def _row(rule_id: int) -> CacheRule:
    rule = CacheRule.objects.filter(pk=rule_id).first()
    if rule is None:
        raise NotFound("There is no such rule.")
    return rule


def _form(rule_id: int | None, given: dict[str, Any]) -> CacheRuleForm:
    """The form of the rule's page, filled in with the rule as it is and what was given."""
    rule = CacheRule() if rule_id is None else _row(rule_id)
    changes = {name: value for name, value in given.items() if value is not None}
    return CacheRuleForm(model_to_dict(rule, FIELDS) | changes, instance=rule)


def _shown(rule: Any) -> dict[str, Any]:
    told = {name: getattr(rule, name) for name in (*FIELDS, "id", "tightened")}
    figures = {
        "entries": rule.entry_count, "hits": rule.hit_count, "last_hit_at": rule.last_hit_at,
        "looks_24h": rule.look_count or 0, "exact_hits_24h": rule.exact_count or 0,
        "semantic_hits_24h": rule.semantic_count or 0, "tokens_saved_30d": rule.token_count or 0,
        "ms_saved_30d": rule.ms_count or 0.0,
    }  # fmt: skip
    return told | {"figures": figures}


def _wrong(found: Estimate) -> dict[str, Any]:
    return {"num": found.num, "num_wrong": found.num_wrong, "low": found.low, "high": found.high}
