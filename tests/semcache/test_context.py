"""A follow-up is answered from another conversation only where both hang on the same."""

from __future__ import annotations

import pytest

from semcache.text import context
from semcache.text.context import compare, hangs_on, is_echoed

ASK = "how long does it take?"
SWITCH = ("Can I switch my Kestrel SIM to an eSIM?", "Yes, for free in the app.")
ALONE = "Which languages does Tunely support on Android tablets?"
STATEMENT = ("I am in Oslo for a week", "Lovely city.")


def why_not(first: tuple[str, ...], second: tuple[str, ...], text: str = ASK) -> str:
    """What stands against serving `text`, asked after `second`, with the answer given after `first`; "" for nothing."""
    stored, asked = hangs_on(text, first), hangs_on(text, second)
    if stored is None or asked is None:
        return "only the same history will do"
    found = compare(stored, asked, text)
    return found.why or ("in doubt" if found.doubts else "")


def test_a_message_that_stands_alone_hangs_on_nothing():
    assert hangs_on(ALONE, STATEMENT) == ()


def test_a_follow_up_hangs_on_all_that_was_said():
    assert hangs_on(ASK, SWITCH) == ("can I switch my Kestrel SIM to an eSIM?", "Yes, for free in the app.")


@pytest.mark.parametrize(
    "text",
    [
        "yes please", "go ahead", "ok do it", "the first one", "book the second slot", "I'll take the cheaper one",
        "the morning one then", "option 2", "what you said", "no thanks", "yeah go on", "let's do the first one",
        "好的", "可以，继续", "就第二个方案吧", "你刚才说的第二点是什么意思", "选项B", "嗯，行",
    ],
)  # fmt: skip
def test_what_points_into_the_answer_before_needs_the_very_same_history(text):
    assert hangs_on(text, SWITCH) is None


@pytest.mark.parametrize("turns", [(), ("only said",), ("said " * 3000, "answered")])
def test_turns_that_cannot_be_compared_leave_the_exact_history(turns):
    assert hangs_on(ASK, turns) is None


@pytest.mark.parametrize(
    "second",
    [
        ("Hi there! Can I switch my Kestrel SIM to an eSIM?", "Yes, for free in the app."),
        ("Hello", "Hello! Anything else I can help you with?", *SWITCH),
        (*SWITCH, "thanks, great", "You're welcome!"),
        ("Can I change my Kestrel SIM to an eSIM?", "No worries. Yes, for free in the app."),
    ],
)
def test_small_talk_does_not_count(second):
    assert why_not(SWITCH, second) == ""
    assert why_not(second, SWITCH) == ""


def test_chinese_small_talk_does_not_count():
    first = ("我想把手机卡换成eSIM", "可以在应用里免费更换。")
    second = ("你好！我想把手机卡换成eSIM", "好的。可以在应用里免费更换。", "谢谢", "不客气！")
    assert why_not(first, second, "这要多久") == ""


@pytest.mark.parametrize(
    "second",
    [
        ("Can I switch my Harbour SIM to an eSIM?", "Yes, for free in the app."),  # a name
        ("Can I switch 2 Kestrel SIMs to an eSIM?", "Yes, for free in the app."),  # a number
        ("Can't I switch my Kestrel SIM to an eSIM?", "Yes, for free in the app."),  # a negation
        ("Can I switch my Kestrel SIM to an eSIM?", "Yes, for £10 in the app."),  # in the answer
        ("Can I switch my Kestrel SIM to an eSIM?", "No, not in the app."),
        (*SWITCH, "I have 2 of them", "Fine."),  # more was said
        ("I am a student", "Noted.", *SWITCH),
        ("What is an eSIM?", "A chip.", "and a SIM?", "A card."),
    ],
)
def test_whatever_differs_counts(second):
    assert why_not(SWITCH, second) not in ("", "in doubt")
    assert why_not(second, SWITCH) not in ("", "in doubt")


def test_one_that_hangs_on_nothing_does_not_answer_one_that_hangs_on_something():
    assert compare((), ("I am in Oslo", ""), ASK).why
    assert compare(("I am in Oslo", ""), (), ASK).why


def test_an_answer_before_that_says_the_opposite_counts():
    first = ("Shall we meet?", "Shall I send the refund today?", "yes", "Done.")
    second = ("Shall we meet?", "Shall I send the replacement today?", "yes", "Done.")
    assert why_not(first, second) == "in doubt"


def test_words_without_their_equal_are_for_a_second_opinion():
    second = ("Can I switch my Kestrel SIM quietly to an eSIM?", "Yes, for free in the app.")
    stored, asked = hangs_on(ASK, SWITCH), hangs_on(ASK, second)
    assert stored and asked
    assert compare(stored, asked, ASK).doubts == ((stored[0], asked[0]),)


def test_codes_are_never_a_matter_of_opinion():
    assert why_not(("my parcel is PN-CARD", "Thanks."), ("my parcel is PN-BIRD", "Thanks.")) not in (
        "",
        "in doubt",
    )


def test_a_conversation_with_too_many_doubts_is_not_the_same():
    first = sum(
        ((f"tell about {word}", "Good.") for word in ("moon", "stone", "river", "house", "garden")), ()
    )
    second = sum(((f"tell about {word}", "Good.") for word in ("bread", "cup", "sand", "milk", "wood")), ())
    assert why_not(first, second) == "too much is worded differently"


def test_conversations_in_quite_other_words_are_not_even_compared(monkeypatch):
    """The guard's work for one look-up is bounded, however long the conversations are."""
    first = sum(((f"I like bird {number}", "Good.") for number in range(9)), ())
    second = sum(((f"I like birds {number}", "Good.") for number in range(9)), ())
    assert why_not(first[:16], second[:16]) == ""
    monkeypatch.setattr(context, "guard", None)
    assert why_not(first, second) == "too much is worded differently"


ASIDE = ("Totally off topic, when does the pool reopen?", "In January.", "my swimsuit is lonely", "Ha.")


def test_an_aside_that_is_called_one_does_not_count():
    assert why_not(SWITCH, (*SWITCH, *ASIDE)) == ""
    assert why_not((*SWITCH, *ASIDE), SWITCH) == ""


def test_an_aside_that_speaks_of_what_is_asked_counts():
    text = "how long is the pool open?"
    assert why_not(SWITCH, (*SWITCH, *ASIDE), text) == "one of them says more"


def test_an_aside_that_nobody_calls_one_counts():
    assert why_not(SWITCH, (*SWITCH, "when does the pool reopen?", "In January.")) == "one of them says more"


@pytest.mark.parametrize(
    ("answer", "is_taken_up"),
    [
        ("Tunely speaks forty languages.", False),
        ("In Oslo, Tunely speaks Norwegian.", True),
        ("For a whole week, forty languages.", True),
    ],
)
def test_an_answer_that_takes_up_what_was_said_before_is_noticed(answer, is_taken_up):
    assert is_echoed(answer, ALONE, STATEMENT) is is_taken_up


def test_a_chinese_answer_that_takes_up_what_was_said_before_is_noticed():
    assert is_echoed("北京的黑洞研究", "什么是黑洞", ("我住在北京", "好的"))
    assert not is_echoed("密度极高的天体", "什么是黑洞", ("我住在北京", "好的"))


def test_the_embedded_text_begins_with_the_question_and_what_was_said_last():
    said = tuple(part for number in range(100) for part in (f"I said sentence number {number}.", "yes"))
    text = context.embedded(ASK, said)
    assert text.startswith(f"{ASK} I said sentence number 99. I said sentence number 98.")
    assert len(text) <= context.MAX_EMBEDDED_CHARS


@pytest.mark.parametrize(
    ("name", "instead", "second"),
    [
        ("_CALLS_IT_ASIDE", context.re.compile(""), (*SWITCH, "I have 2 of them", "Fine.")),
        ("_is_small_talk", lambda sentence: True, ("Can I switch my Harbour SIM?", "Yes.")),
        ("_marks", lambda text: frozenset(), ("Can I switch my Kestrel SIM X1 to an eSIM?", SWITCH[1])),
        ("guard", type("Blind", (), {"verdicts": lambda *_: (), "may_serve": lambda _: True}), (SWITCH[0], "Never.")),
    ],
)  # fmt: skip
def test_without_one_of_the_checks_another_conversation_would_serve(monkeypatch, name, instead, second):
    assert why_not(SWITCH, second) not in ("", "in doubt")
    monkeypatch.setattr(context, name, instead)
    assert why_not(SWITCH, second) in ("", "in doubt", "only the same history will do")


def test_a_long_message_costs_no_time_however_odd_it_is():
    assert hangs_on("a" + "!" * 1_000_000 + "a", ("Hi.", "Hello.")) is None
    alone = "Which languages does Tunely support on Android tablets?"
    assert hangs_on(alone, ("a" + "!" * 11_000 + "a", "Hello.")) == ()
