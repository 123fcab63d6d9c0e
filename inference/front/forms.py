"""The forms of one history that say the same, for templates that do not take every order of roles.

Knows segments and roles. Does not know which template takes what: the first form that it takes is the one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference.types import Segment


def forms_of(segments: Sequence[Segment]) -> Iterator[Sequence[Segment]]:
    """The history as it is, then as templates may want it: alternating roles, no system message, or both."""
    seen: list[Sequence[Segment]] = []
    folded = fold_system(segments)
    for form in (segments, merge_same_roles(segments), folded, merge_same_roles(folded)):
        if list(form) not in seen:
            seen.append(list(form))
            yield form


def fold_system(segments: Sequence[Segment]) -> Sequence[Segment]:
    """Leading system messages become the beginning of the first question, for templates that know no system."""
    start = next((place for place, segment in enumerate(segments) if segment.role != "system"), len(segments))
    if not 0 < start < len(segments) or segments[start].role != "user":
        return segments
    text = "\n\n".join(segment.text for segment in segments[: start + 1])
    return [Segment("user", text), *segments[start + 1 :]]


def merge_same_roles(segments: Sequence[Segment]) -> list[Segment]:
    """Neighbours with one role become one segment, for templates that want user and assistant to alternate.

    Messages that call functions, and results, stay what they are.
    """
    merged: list[Segment] = []
    for segment in segments:
        if (
            merged
            and merged[-1].role == segment.role
            and not (_is_of_call(merged[-1]) or _is_of_call(segment))
        ):
            merged[-1] = Segment(segment.role, f"{merged[-1].text}\n\n{segment.text}")
        else:
            merged.append(segment)
    return merged


def _is_of_call(segment: Segment) -> bool:
    return segment.role == "tool" or bool(segment.tool_calls)
