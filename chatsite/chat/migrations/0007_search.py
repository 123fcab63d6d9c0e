"""Search by words, pairs of letters and signs. The indexes are built beside running writes; nothing is rewritten."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations
from django.db.models import F, Q

import chatsite.chat.terms

# Letters of scripts without blanks between words, signs that mean something alone, and what divides: blanks,
# punctuation, marks of form. All other letters and digits make words.
PAIRS = """
0e01-109f 1100-11ff 1780-17ff 2e80-2fdf 3005-3007 3041-30ff 3105-31bf 31f0-31ff 3400-4dbf 4e00-a4c7 a960-a97f
aa00-aa3f aa60-aa7f ac00-d7af f900-faff 1b000-1b2ff 20000-33479
"""
SIGNS = "20a0-20cf 2100-2dff 1f000-1f3fa 1f400-1ffff"
GAPS = """
00-2f 3a-40 5b-60 7b-a9 ab-b4 b6-b8 bb-bb bf-bf d7-d7 f7-f7 2000-206f 2e00-2e7f 3000-3004 3008-3040 fe00-fe0f fe30-fe6f
feff-ff0f ff1a-ff20 ff3b-ff40 ff5b-ff65 ffe0-ffff 1f3fb-1f3ff e0000-e01ef
"""


def in_brackets(ranges):
    """For a regular expression."""
    pairs = (each.split("-") for each in ranges.split())
    return "".join(f"\\U{first:0>8}-\\U{last:0>8}" for first, last in pairs)


def as_multirange(ranges):
    """Of code points, which are compared much faster than letters are matched."""
    pairs = (each.split("-") for each in ranges.split())
    numbers = ",".join(f"[{int(first, 16)},{int(last, 16)}]" for first, last in pairs)
    return f"'{{{numbers}}}'::int4multirange"


FUNCTIONS = """
CREATE FUNCTION chat_search_fold(content text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN left(lower(normalize(left(content, 20000), NFKC) COLLATE "{collation}"), 20000);

CREATE FUNCTION chat_search_terms(content text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT array_agg(found.term) FROM (
        SELECT left(word.match[1], 64) AS term
        FROM regexp_matches(chat_search_fold(content), '[^{gap}{pair}{sign}]+', 'g') AS word(match)
        UNION ALL
        SELECT CASE WHEN ascii(one.letter) <@ {pairs} AND ascii(one.following) <@ {pairs}
            THEN one.letter || one.following ELSE one.letter END
        FROM (SELECT string_to_array(chat_search_fold(content), NULL) AS letters) AS line,
            unnest(line.letters, line.letters[2:]) AS one(letter, following)
        WHERE ascii(one.letter) <@ {pairs_and_signs}
    ) AS found;
END;

CREATE FUNCTION chat_search_vector(content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 5000
RETURN coalesce(array_to_tsvector(chat_search_terms(content)), ''::tsvector);

CREATE FUNCTION chat_search_query(asked text) RETURNS tsquery
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT string_agg('''' || term || ''':*', ' & ')::tsquery FROM unnest(chat_search_terms(asked)) AS term;
END;

CREATE FUNCTION chat_search_runs(asked text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT coalesce(array_agg('%' || run.match[1] || '%'), '{{}}'::text[])
    FROM regexp_matches(chat_search_fold(asked), '[{pair}]{{3,}}', 'g') AS run(match);
END;
"""
NO_FUNCTIONS = """
DROP FUNCTION chat_search_runs, chat_search_query, chat_search_vector, chat_search_terms, chat_search_fold;
"""


def make_functions(apps, schema_editor):
    """Case by Unicode's rules where the server has a collation for that (PostgreSQL 17), else by the database's own."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'pg_c_utf8')")
        collation = "pg_c_utf8" if cursor.fetchone()[0] else "default"
        cursor.execute(
            FUNCTIONS.format(
                collation=collation,
                gap=in_brackets(GAPS),
                pair=in_brackets(PAIRS),
                sign=in_brackets(SIGNS),
                pairs=as_multirange(PAIRS),
                pairs_and_signs=as_multirange(f"{PAIRS} {SIGNS}"),
            )
        )


def drop_functions(apps, schema_editor):
    schema_editor.execute(NO_FUNCTIONS)


class Migration(migrations.Migration):
    atomic = False  # indexes are built concurrently

    dependencies = [("chat", "0006_remove_generation_reserved_tokens")]

    operations = [
        migrations.RunPython(make_functions, drop_functions, atomic=True),
        # The site's own limit for a statement is far less than what a big table takes.
        migrations.RunSQL("SET statement_timeout = 0", "RESET statement_timeout"),
        AddIndexConcurrently(
            "conversation",
            django.contrib.postgres.indexes.GinIndex(
                chatsite.chat.terms.Terms(F("title")), name="conversation_search"
            ),
        ),
        AddIndexConcurrently(
            "message",
            django.contrib.postgres.indexes.GinIndex(
                chatsite.chat.terms.Terms(F("text")),
                condition=Q(state__in=["complete", "stopped", "failed", "interrupted"]),
                name="message_search",
            ),
        ),
        migrations.RunSQL("RESET statement_timeout", "SET statement_timeout = 0"),
    ]
