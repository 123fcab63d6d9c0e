"""Search by words, pairs of letters and signs. The indexes are built beside running writes; nothing is rewritten."""

import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations
from django.db.models import F, Q

import chatsite.chat.terms

# Letter by letter: `pair` for scripts without blanks between words, `sign` for what means something alone, `word` for
# all other letters and digits; blanks, punctuation and marks of form are left out, and so divide.
FUNCTIONS = """
CREATE FUNCTION chat_search_fold(content text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN left(lower(normalize(left(content, 50000), NFKC) COLLATE "{collation}"), 50000);

CREATE FUNCTION chat_search_letters(content text) RETURNS TABLE (place bigint, letter text, kind text)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT classed.place, classed.letter, classed.kind FROM (
        SELECT one.place, one.letter, CASE
            WHEN ascii(one.letter) <@ '{{[3585,4255],[4352,4607],[6016,6143],[11904,12255],[12293,12295],[12353,12543],
                [12549,12735],[12784,12799],[13312,19903],[19968,42191],[43360,43391],[43488,43519],[43616,43647],
                [44032,55215],[63744,64255],[110592,111359],[131072,210041]}}'::int4multirange THEN 'pair'
            WHEN ascii(one.letter) <@ '{{[8352,8399],[8448,12031],[126976,127994],[128000,131071]}}'::int4multirange
                THEN 'sign'
            WHEN ascii(one.letter) <@ '{{[0,47],[58,64],[91,96],[123,169],[171,180],[182,184],[187,187],[191,191],
                [215,215],[247,247],[8192,8303],[12288,12351],[65024,65055],[65072,65135],[65279,65295],[65306,65312],
                [65339,65344],[65371,65381],[65504,65535],[127995,127999],[917504,917999]}}'::int4multirange THEN NULL
            ELSE 'word'
        END AS kind
        FROM string_to_table(chat_search_fold(content), NULL) WITH ORDINALITY AS one(letter, place)
    ) AS classed WHERE classed.kind IS NOT NULL;
END;

CREATE FUNCTION chat_search_pieces(content text) RETURNS TABLE (kind text, piece text)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT piece.kind, string_agg(piece.letter, '' ORDER BY piece.place) FROM (
        SELECT one.*, one.place - row_number() OVER (PARTITION BY one.kind ORDER BY one.place) AS run
        FROM chat_search_letters(content) AS one
    ) AS piece GROUP BY piece.kind, piece.run;
END;

CREATE FUNCTION chat_search_terms(content text) RETURNS text[]
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT array_agg(DISTINCT term.term) FROM (
        SELECT left(piece, 64) AS term FROM chat_search_pieces(content) WHERE kind = 'word'
        UNION ALL
        SELECT CASE WHEN kind = 'pair' AND next_kind = 'pair' AND next_place = place + 1
            THEN letter || next_letter ELSE letter END
        FROM (
            SELECT *, lead(letter) OVER ahead AS next_letter, lead(kind) OVER ahead AS next_kind,
                lead(place) OVER ahead AS next_place
            FROM chat_search_letters(content) WINDOW ahead AS (ORDER BY place)
        ) AS one WHERE kind IN ('pair', 'sign')
    ) AS term;
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
    SELECT coalesce(array_agg('%' || piece || '%'), '{{}}'::text[])
    FROM chat_search_pieces(asked) WHERE kind = 'pair' AND length(piece) > 2;
END;
"""
NO_FUNCTIONS = """
DROP FUNCTION chat_search_runs, chat_search_query, chat_search_vector, chat_search_terms, chat_search_pieces,
    chat_search_letters, chat_search_fold;
"""


def make_functions(apps, schema_editor):
    """Case by Unicode's rules where the server has a collation for that (PostgreSQL 17), else by the database's own."""
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'pg_c_utf8')")
        collation = "pg_c_utf8" if cursor.fetchone()[0] else "default"
        cursor.execute(FUNCTIONS.format(collation=collation))


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
