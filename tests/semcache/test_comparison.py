"""Whether an answer made once more says something else than the one that was served: a proxy, and a mild one."""

from __future__ import annotations

import pytest

from semcache.text import comparison
from semcache.text.comparison import first_sentence, says_otherwise

SAME = [
    ("Paris.", "The capital of France is Paris, a city on the Seine."),
    ("It costs 20 euros a month. VAT is included.", "The price is 20 euros for each month."),
    ("Founded in 1998.", "It was founded in 1998 by 2 people."),
    ("Open the settings and choose login.", "Choose login, which is in the settings."),
    ("Yes, it does.\n\nIt costs 20 euros.", "Yes, it does.\n\nIt weighs 3 kilos."),
    ("在设置里打开登录。", "请在设置中打开登录选项。"),
    ("print(1)", "print(1)"),
    ("👍", "Yes, that is fine."),
]
OTHER = [
    ("It costs 20 euros a month.", "It costs 30 euros a month."),
    ("The shop opens at 9. Do come!", "The shop opens at 10. Do come!"),
    ("The plan includes backup.", "The plan does not include backup."),
    ("套餐包含备份。", "套餐不包含备份。"),
    ("Berlin has three large airports.", "Rinse the rice twice, then cook it slowly."),
]


@pytest.mark.parametrize(("served", "made"), SAME)
def test_the_same_in_other_words_is_no_alarm(served, made):
    assert not says_otherwise(served, made)
    assert not says_otherwise(made, served)


@pytest.mark.parametrize(("served", "made"), OTHER)
def test_another_answer_is_told_apart(served, made):
    assert says_otherwise(served, made)
    assert says_otherwise(made, served)


@pytest.mark.parametrize("score", [0.0, 0.49])
def test_a_verifier_tells_apart_what_words_do_not(score):
    served, made = "To turn it on, open the menu.", "To turn it off, open the menu."
    assert not says_otherwise(served, made)
    assert says_otherwise(served, made, score)
    assert not says_otherwise(served, made, 0.5)


def test_a_verifier_excuses_other_words_but_neither_numbers_nor_a_not():
    assert not says_otherwise(*OTHER[4], 0.9)
    assert all(says_otherwise(served, made, 0.9) for served, made in OTHER[:4])


def test_the_very_same_text_is_the_same_whatever_the_verifier_says():
    assert not says_otherwise("It  depends.", "It depends.", 0.0)


@pytest.mark.parametrize(
    ("answer", "first"),
    [
        ("Yes. No.", "Yes."),
        ("\n\n## Price\n\nIt costs 3.5 euros.", "Price"),
        ("- It costs 3.5 euros a month! Not more.", "It costs 3.5 euros a month!"),
        ("是的。不过要等。", "是的。"),
        ("", ""),
        ("x" * 1000, "x" * comparison.MAX_SENTENCE_CHARS),
    ],
)
def test_the_first_sentence_is_where_an_answer_says_it(answer, first):
    assert first_sentence(answer) == first


@pytest.mark.parametrize(
    ("name", "mutant", "pair"),
    [
        ("numbers_of", lambda text: frozenset(), OTHER[0]),
        ("NEARLY_THE_SAME_FROM", 1.1, OTHER[2]),
        ("OTHER_WORDS_BELOW", 0.0, OTHER[4]),
        ("first_sentence", lambda text: text, SAME[4]),
    ],
)
def test_each_part_of_the_comparison_is_needed(monkeypatch, name, mutant, pair):
    expected = says_otherwise(*pair)
    monkeypatch.setattr(comparison, name, mutant)
    assert says_otherwise(*pair) is not expected
