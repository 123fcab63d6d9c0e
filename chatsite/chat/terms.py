"""What a text can be found by, computed in the database: the functions of migration 0007 as expressions of the ORM.

Words are found by their beginnings, scripts that are written without blanks (Chinese, Japanese, Korean, Thai and their
neighbours) by pairs of letters, and signs such as emoji one by one; case and the many widths and forms of one letter
make no difference. Knows no rows.
"""

from __future__ import annotations

from django.contrib.postgres.search import SearchQueryField, SearchVectorField
from django.db.models import BooleanField, Expression, F, Func, Value


class Terms(Func):
    """All terms of a text, of its first 20,000 characters."""

    function = "chat_search_vector"
    arity = 1
    output_field = SearchVectorField()


class Wish(Func):
    """The query that needs all terms of what somebody typed; NULL, which nothing matches, when it has none."""

    function = "chat_search_query"
    arity = 1
    output_field = SearchQueryField()


class Said(Func):
    """Whether the text really holds the runs of letters of which the query knows the pairs only."""

    template = "chat_search_fold(%(expressions)s))"
    arg_joiner = ") LIKE ALL (chat_search_runs("
    arity = 2
    output_field = BooleanField()


def found_in(column: str, query: str) -> tuple[Expression, ...]:
    """Conditions for a filter: the index finds by the first one, the second sifts."""
    return _Matches(Terms(F(column)), Wish(Value(query))), Said(F(column), Value(query))


class _Matches(Func):
    template = "(%(expressions)s)"
    arg_joiner = " @@ "
    arity = 2
    output_field = BooleanField()
