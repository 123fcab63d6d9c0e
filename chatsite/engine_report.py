"""What the engine says of itself, as sections of labelled values for an operator, with advice where it helps.

Knows the fields of `EngineInfo` and `EngineStats` and how a person reads them. Does not know pages, nor how the
engine is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.template.defaultfilters import filesizeformat
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from inference.types import EngineInfo, EngineStats, TemplateFindings


@dataclass(frozen=True, slots=True)
class Row:
    """`share` (0 to 1) is shown as a bar; None shows none."""

    label: str
    value: str
    note: str = ""
    share: float | None = None


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    rows: list[Row]


def sections_of(info: EngineInfo | None, stats: EngineStats) -> list[Section]:
    """Everything worth a look; without `info` (the model is still loading) only the numbers."""
    sections = [] if info is None else [_model(info), _template(info.template, stats)]
    sections += [_memory(info, stats), _reuse(stats)]
    sections += [_shared_prefixes(stats)] if stats.shared_prefixes else []
    return [*sections, _disk(stats), _work(stats), _background(stats), _lane(stats)]


def _model(info: EngineInfo) -> Section:
    rows = [
        Row(_("Model"), info.model, _("Trial model: English only.") if info.is_trial_model else ""),
        Row(_("Revision"), info.revision, _("Changes with weights, tokenizer, template or precision.")),
        Row(_("Device"), info.device),
        Row(_("Precision"), info.dtype),
        Row(_("Window"), _tokens(info.max_context), _("Prompt and answer together.")),
        Row(_("Longest answer"), _tokens(min(info.max_output_tokens, info.max_context))),
        Row(_("KV per token"), _bytes(info.kv_bytes_per_token)),
        Row(_("Order of waiting requests"), info.policy),
        Row(_("Sentence encoder"), info.embedder or _("none")),
        Row(_("Verifier"), info.verifier or _("none")),
    ]
    if info.upstream:
        rows.append(Row(_("Tokens are made by"), info.upstream))
    return Section(_("Model"), rows)


def _template(found: TemplateFindings, stats: EngineStats) -> Section:
    """Each finding in words, with what follows from it."""
    return Section(
        _("Chat template"),
        [
            Row(
                _("Old turns stay as they are"),
                _yes_no(found.is_append_only),
                _("A further turn reads only what is new.")
                if found.is_append_only
                else _("A changed answer is read again, in idle time where there is some."),
            ),
            Row(
                _("Cuts the thinking out of old answers"),
                _yes_no(found.strips_thinking),
                _("Thinking costs KV in its own turn only.") if found.strips_thinking else "",
            ),
            Row(
                _("Writes the date"),
                _yes_no(found.has_date),
                _("At midnight no kept KV fits any more. Use a template with a fixed date.")
                if found.has_date
                else "",
            ),
            Row(
                _("Writes a system prompt of its own"),
                _yes_no(found.has_default_system),
                _("Chats without a system prompt get the template's. Give them one to replace it.")
                if found.has_default_system
                else "",
            ),
            Row(
                _("Generated tokens are used again"),
                _yes_no(found.is_followed),
                "" if found.is_followed else _("Old answers are tokenised anew, so less KV fits."),
            ),
            Row(_("Answers tokenised anew"), _number(stats.ledger_fallbacks)),
            Row(_("Histories read again in idle time"), _number(stats.canonicalised)),
        ],
    )


def _memory(info: EngineInfo | None, stats: EngineStats) -> Section:
    budget = stats.kv_budget_bytes
    block_bytes = info.kv_bytes_per_token * info.block_tokens if info else 0

    def blocks(label: str, number: int, note: str = "") -> Row:
        size = f" · {_bytes(number * block_bytes)}" if block_bytes else ""
        return Row(label, f"{_number(number)}{size}", note, _share(number, stats.blocks_total))

    return Section(
        _("KV memory"),
        [
            Row(_("Budget"), _bytes(budget)),
            Row(
                _("Committed"),
                _bytes(stats.kv_committed_bytes),
                _("Taken from the system so far."),
                _share(stats.kv_committed_bytes, budget),
            ),
            blocks(_("Blocks of running answers"), stats.blocks_used),
            blocks(_("Shared by users"), stats.blocks_shared, _("The last to go.")),
            blocks(_("Active between turns"), stats.blocks_active),
            blocks(_("Idle"), stats.blocks_idle),
            blocks(_("Idle for long"), stats.blocks_stale),
            blocks(_("Of replaced branches"), stats.blocks_superseded),
            blocks(_("Of closed conversations"), stats.blocks_closed, _("The first to go.")),
            blocks(_("Free"), stats.blocks_free),
            Row(
                _("Fragmentation"),
                _percent(stats.kv_slack),
                _("Token slots in used blocks that hold nothing."),
                stats.kv_slack,
            ),
            Row(_("Evicted blocks"), _number(stats.evicted_blocks)),
            Row(_("Times that blocks did not add up"), _number(stats.leak_alarms), _alarm(stats.leak_alarms)),
        ],
    )


def _reuse(stats: EngineStats) -> Section:
    sources = (
        (_("From the conversation"), stats.reused_head_tokens),
        (_("From the same user's other chats"), stats.reused_prefix_tokens),
        (_("From prefixes that users share"), stats.reused_shared_tokens),
        (_("From disk"), stats.reused_disk_tokens),
        (_("Computed"), stats.prefilled_tokens),
    )
    rows = [Row(_("Prompt tokens"), _number(stats.prompt_tokens))]
    for label, number in sources:
        share = _share(number, stats.prompt_tokens)
        rows.append(Row(label, f"{_number(number)} · {_percent(share)}", share=share))
    return Section(_("Where prompts came from"), rows)


def _shared_prefixes(stats: EngineStats) -> Section:
    rows = [
        Row(
            prefix.name,
            f"{_tokens(prefix.num_tokens)} · {_percent(prefix.overlap)}",
            _("Shared now.") if prefix.is_shared else _("Not shared: too few prompts begin with it."),
            prefix.overlap,
        )
        for prefix in stats.shared_prefixes
    ]
    return Section(_("Prefixes that may be shared, and how many prompts begin with them"), rows)


def _disk(stats: EngineStats) -> Section:
    return Section(
        _("KV on disk"),
        [
            Row(_("Kept"), f"{_number(stats.disk_blocks)} · {_bytes(stats.disk_bytes)}"),
            Row(_("Written"), _number(stats.disk_written_blocks)),
            Row(_("Not written in time"), _number(stats.disk_skipped_blocks)),
            Row(_("Read back"), _number(stats.disk_restored_blocks)),
            Row(
                _("Refused by their checksum"),
                _number(stats.disk_refused_blocks),
                _alarm(stats.disk_refused_blocks),
            ),
            Row(_("Measured reading"), _rate(stats.restore_bytes_per_s, is_bytes=True)),
        ],
    )


def _work(stats: EngineStats) -> Section:
    step_ms = 1000 * stats.step_seconds_sum / stats.steps if stats.steps else 0.0
    return Section(
        _("Work"),
        [
            Row(_("Running"), _number(stats.running)),
            Row(_("Waiting"), f"{_number(stats.waiting)} · {_tokens(stats.waiting_tokens)}"),
            Row(_("Waiting for a seat"), _number(stats.waiting_for_seats)),
            Row(_("Waiting for KV blocks"), _number(stats.waiting_for_blocks)),
            Row(_("Waiting offline work"), _number(stats.waiting_offline)),
            Row(_("Generated tokens"), _number(stats.generated_tokens)),
            Row(_("Guessed tokens"), _number(stats.drafted_tokens)),
            Row(
                _("Of these, right"),
                _number(stats.accepted_tokens),
                share=_share(stats.accepted_tokens, stats.drafted_tokens),
            ),
            Row(_("Memory in use"), _bytes(stats.device_bytes)),
            Row(_("Steps"), f"{_number(stats.steps)} · {number_format(step_ms, 1)} ms"),
            Row(_("Device-seconds"), _number(round(stats.device_seconds, 1))),
            Row(_("Measured prefill"), _rate(stats.prefill_tokens_per_s)),
            Row(_("Prefill tokens per step"), _number(round(stats.step_target_tokens))),
            Row(_("Preempted"), _number(stats.preemptions)),
            Row(_("Refused"), _number(stats.refused)),
            Row(_("Cancelled"), _number(stats.cancelled)),
            Row(_("Ended for going in circles"), _number(stats.repetitions)),
            Row(_("Without their oldest turns"), _number(stats.trimmed_requests)),
            Row(_("Restarts of the core"), _number(stats.core_restarts), _alarm(stats.core_restarts)),
        ],
    )


def _of_warmed(label: str, num_tokens: int, stats: EngineStats) -> Row:
    return Row(label, _number(num_tokens), share=_share(num_tokens, stats.warmed_tokens))


def _background(stats: EngineStats) -> Section:
    share = _share(stats.background_device_seconds, stats.device_seconds)
    return Section(
        _("Work nobody asked for: probes, and prompts read ahead"),
        [
            Row(_("Prompt tokens"), _number(stats.background_prompt_tokens)),
            Row(_("Reused"), _number(stats.background_reused_tokens)),
            Row(_("Computed"), _number(stats.background_prefilled_tokens)),
            Row(_("Generated tokens"), _number(stats.background_generated_tokens)),
            Row(_("Device-seconds"), _number(round(stats.background_device_seconds, 1)), share=share),
            Row(_("Tokens read ahead of a question"), _number(stats.warmed_tokens)),
            _of_warmed(_("Of these, used by a question"), stats.warmed_used_tokens, stats),
            _of_warmed(_("Of these, gone before a question"), stats.warmed_wasted_tokens, stats),
        ],
    )


def _lane(stats: EngineStats) -> Section:
    texts = stats.embedded_texts + 2 * stats.verified_pairs
    each = f" · {number_format(texts / stats.lane_batches, 1)}" if stats.lane_batches else ""
    return Section(
        _("Embedding and verifier lane"),
        [
            Row(_("Embedded texts"), _number(stats.embedded_texts)),
            Row(_("Compared pairs"), _number(stats.verified_pairs)),
            Row(_("Batches, and texts in each"), f"{_number(stats.lane_batches)}{each}"),
        ],
    )


def _alarm(number: int) -> str:
    return _("Look into the engine's log.") if number else ""


def _yes_no(is_so: bool) -> str:
    return _("yes") if is_so else _("no")


def _number(number: float) -> str:
    return number_format(number, use_l10n=True, force_grouping=True)


def _tokens(number: int) -> str:
    return _("%(number)s tokens") % {"number": _number(number)}


def _bytes(number: float) -> str:
    return filesizeformat(number).replace("\xa0", " ")


def _percent(share: float) -> str:
    return f"{number_format(100 * share, 1)} %"


def _rate(per_s: float, *, is_bytes: bool = False) -> str:
    if not per_s:
        return _("not measured yet")
    return f"{_bytes(per_s)}/s" if is_bytes else _("%(number)s tokens/s") % {"number": _number(round(per_s))}


def _share(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole else 0.0
