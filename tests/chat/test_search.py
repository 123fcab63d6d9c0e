"""Conversations are found by their titles and texts, in every script, by an index."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from chatsite.accounts.models import User
from chatsite.chat import listing
from chatsite.chat.listing import Wanted
from chatsite.chat.models import Conversation, Message

TEXTS = {
    "weather": "北京今天天气怎么样？",
    "stocks": "今天股票大涨，天色不好，气温下降",
    "rivers": "Which RIVER is the longest, and how long is it?",
    "mixed": "用Python写一个ＨＴＴＰ服务器 please",
    "emoji": "great 🌤️👍🏽 see you",
    "accents": "Où est l'École? Ещё РАЗ",
    "kana": "東京タワーの高さは？",
    "korean": "서울에서 부산까지",
    "thai": "สวัสดีครับ",
    "code": "foo_bar(x) == 100% \\o/",
    "empty": "",
}
FOUND = {
    "天气": ["weather"],
    "气": ["stocks", "weather"],
    "样": ["weather"],  # the last letter of a run
    "今天天气": ["weather"],
    "天气 今天": ["weather"],
    "今天": ["stocks", "weather"],
    "river": ["rivers"],
    "RIV": ["rivers"],
    "long river": ["rivers"],
    "iver": [],
    "python": ["mixed"],
    "http": ["mixed"],
    "python 服务器": ["mixed"],
    "写一个服务器": [],  # its pairs are not all there
    "🌤": ["emoji"],
    "👍": ["emoji"],
    "🚀": [],
    "école": ["accents"],
    "ещё раз": ["accents"],
    "タワー": ["kana"],
    "부산": ["korean"],
    "สวัส": ["thai"],
    "foo bar": ["code"],
    "100%": ["code"],
    "%": [],
    "_": [],
    "'": [],
    "a' | b:* & !c": [],
    "？": [],
}


def titles_found(user: User, query: str) -> list[str]:
    return sorted(row.title for row in listing.conversations(user.pk, Wanted(query), "").items)


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user("ada")


def test_texts_are_found_by_what_stands_in_them(ada: User, django_user_model: Any) -> None:
    other = User.objects.create_user("bob")
    for owner in (ada, other):
        for title, text in TEXTS.items():
            row = Conversation.objects.create(owner=owner, title=title)
            Message.objects.create(conversation=row, role="user", text=text)
    assert {query: titles_found(ada, query) for query in FOUND} == FOUND


def test_pairs_alone_do_not_make_a_phrase(ada: User) -> None:
    """北京, 京大 and 大学 all occur, 北京大学 does not."""
    for title, text in {"phrase": "我在北京大学", "pairs": "北京的京大路上有大学"}.items():
        row = Conversation.objects.create(owner=ada, title=title)
        Message.objects.create(conversation=row, role="user", text=text)
    assert titles_found(ada, "北京大学") == ["phrase"]


def test_titles_are_found_too_and_running_answers_when_they_end(ada: User) -> None:
    row = Conversation.objects.create(owner=ada, title="旅行计划 for May")
    assert titles_found(ada, "计划") == titles_found(ada, "may") == ["旅行计划 for May"]
    answer = Message.objects.create(conversation=row, role="assistant", text="火车票", state="running")
    assert titles_found(ada, "火车") == []
    Message.objects.filter(pk=answer.pk).update(state="complete")
    assert titles_found(ada, "火车") == ["旅行计划 for May"]


def test_no_text_is_too_odd_or_too_long_to_be_kept(ada: User) -> None:
    row = Conversation.objects.create(owner=ada, title="odd")
    everything = "".join(chr(code) for code in range(1, 0x110000, 7) if not 0xD800 <= code <= 0xDFFF)
    for text in ("字" * 100_000 + "x" * 100_000, everything, "ﷺ" * 9_000, "' \\ : & | ! ( ) <-> *"):
        Message.objects.create(conversation=row, role="user", text=text)
    assert titles_found(ada, "字字字") == ["odd"]
    Message.objects.create(conversation=row, role="user", text="x" * 200_000)
    assert titles_found(ada, "x" * 100) == ["odd"]


def test_the_search_reads_the_index_and_not_every_text(ada: User) -> None:
    row = Conversation.objects.create(owner=ada, title="long")
    Message.objects.bulk_create(
        Message(conversation=row, role="user", text=f"第{number}条 message number {number}")
        for number in range(400)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE chat_message, chat_conversation")
        for query in ("234条", "messages 77", "第7"):
            sql, parameters = Conversation.objects.filter(
                listing._found(ada.pk, query)
            ).query.sql_with_params()
            cursor.execute(f"EXPLAIN {sql}", parameters)
            plan = "\n".join(line for (line,) in cursor.fetchall())
            assert "message_search" in plan, plan
