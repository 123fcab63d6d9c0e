"""Virtual token counters: who is served next, in tokens rather than requests."""

from __future__ import annotations

from inference.core import fairness
from inference.core.classes import Classes
from inference.core.fairness import FairShares
from inference.core.messages import Admit
from inference.core.policy import FirstCome
from inference.core.queue_order import in_order
from inference.core.sequence import Sequence, State
from tests.inference.core.driver import admit
from tests.inference.core.fakes import make_fake_core

ids = iter(range(1, 10_000))


def waiting(user: str, prompt: int = 10, **fields: object) -> Sequence:
    return Sequence(admit([1] * prompt, salt=user.encode(), **fields), next(ids), 0.0)  # type: ignore[arg-type]


def request(user: str, number: int, prompt: int = 8, max_tokens: int = 2) -> Admit:
    tokens = [(number * 11 + place) % 50 for place in range(prompt)]
    return admit(tokens, salt=user.encode(), max_tokens=max_tokens, id=f"{user}-{number}")


def start(shares: FairShares, sequence: Sequence) -> None:
    sequence.move(State.PREFILL, 0.0)
    shares.start(sequence)


def order(shares: FairShares, sequences: list[Sequence]) -> list[str]:
    return [s.admit.salt.decode() for s in shares.order(sequences, FirstCome(), 0.0)]


def test_who_floods_the_queue_alternates_with_who_asks_rarely() -> None:
    core = make_fake_core(max_batch=1)
    core.driver.step(*(request("flooder", n) for n in range(6)), *(request("modest", n) for n in range(2)))
    core.driver.run()
    assert list(core.driver.finished)[:5] == ["flooder-0", "modest-0", "flooder-1", "modest-1", "flooder-2"]


def test_without_fair_shares_the_flood_goes_first() -> None:
    core = make_fake_core(max_batch=1, fair_shares=False)
    core.driver.run(*(request("flooder", n) for n in range(6)), *(request("modest", n) for n in range(2)))
    assert list(core.driver.finished)[-1] == "modest-1"


def test_shares_are_in_tokens_so_one_long_prompt_costs_as_much_as_many_short_ones() -> None:
    core = make_fake_core(num_blocks=128, max_batch=1)
    core.driver.step(
        *(request("long", n, prompt=80) for n in range(2)), *(request("short", n) for n in range(5))
    )
    core.driver.run()
    assert list(core.driver.finished)[:6] == ["long-0", *(f"short-{n}" for n in range(5))]


def test_the_queue_position_that_is_told_is_the_expected_order() -> None:
    core = make_fake_core(max_batch=1)
    core.driver.step(request("first", 0, max_tokens=9))
    pack = core.driver.step(*(request("a", n) for n in range(3)), *(request("b", n) for n in range(2)))
    assert [name for name, _ in pack.positions] == ["a-0", "b-0", "a-1", "b-1", "a-2"]


def test_reused_tokens_are_not_charged_and_generated_ones_count_double() -> None:
    shares = FairShares()
    sequence = waiting("u", prompt=10)
    shares.arrive(sequence)
    sequence.num_computed = sequence.prompt_done = 6  # reused
    shares.charge(sequence, 4)
    assert shares.served(sequence) == 4.0
    sequence.move(State.PREFILL, 0.0)
    sequence.advance(4)
    sequence.move(State.DECODE, 0.0)
    shares.charge(sequence, 1)
    assert shares.served(sequence) == 6.0


def test_what_a_preemption_makes_to_be_computed_again_is_not_charged_again() -> None:
    shares = FairShares()
    sequence = waiting("u", prompt=10)
    shares.arrive(sequence)
    shares.charge(sequence, 8)
    sequence.advance(8)
    sequence.num_computed = 0
    shares.charge(sequence, 10)
    assert shares.served(sequence) == 10.0


def test_who_comes_back_from_idle_has_saved_up_no_claim() -> None:
    """Killed by a counter that starts at zero: the newcomer would then be served alone until it has caught up."""
    shares = FairShares()
    busy, busier = waiting("busy"), waiting("busier")
    for sequence, served in ((busy, 300), (busier, 500)):
        shares.arrive(sequence)
        sequence.state = State.DECODE
        shares.charge(sequence, served // 2)
        sequence.state = State.WAITING
    newcomer = waiting("newcomer")
    shares.arrive(newcomer)
    assert shares.served(newcomer) == 300.0
    start(shares, busy)
    shares.arrive(waiting("newcomer"))
    assert shares.served(newcomer) == 300.0, "who waits already is lifted no further"


def test_only_those_who_wait_now_are_the_level_of_a_newcomer() -> None:
    """One of them starts, is preempted and waits again; the other is cancelled in the queue."""
    shares = FairShares()
    preempted, cancelled = waiting("preempted", prompt=50), waiting("cancelled", prompt=50)
    for sequence in (preempted, cancelled):
        shares.arrive(sequence)
    shares.charge(preempted, 50)
    shares.charge(cancelled, 20)
    start(shares, preempted)
    shares.arrive(first := waiting("first"))
    assert shares.served(first) == 20
    preempted.move(State.WAITING, 0.0)
    shares.wait(preempted)
    for gone in (first, cancelled):
        shares.leave(gone)
    shares.arrive(second := waiting("second"))
    assert shares.served(second) == 50


def test_while_nobody_waits_a_newcomer_starts_level_with_who_was_started_last() -> None:
    shares = FairShares()
    running = waiting("running")
    shares.arrive(running)
    start(shares, running)
    shares.charge(running, 10)
    newcomer = waiting("newcomer")
    shares.arrive(newcomer)
    assert shares.served(newcomer) == 10.0


def test_a_debt_is_not_shed_by_going_idle_for_a_moment() -> None:
    shares = FairShares()
    debtor, other = waiting("debtor"), waiting("other")
    shares.arrive(debtor)
    shares.charge(debtor, 10)
    shares.leave(debtor)
    shares.arrive(other)
    start(shares, other)
    again = waiting("debtor")
    shares.arrive(again)
    assert order(shares, [again, other]) == ["other", "debtor"]


def test_counters_of_users_with_nothing_here_are_bounded() -> None:
    shares = FairShares()
    for number in range(fairness.MAX_IDLE_USERS + 50):
        sequence = waiting(f"user-{number}")
        shares.arrive(sequence)
        start(shares, sequence)
        shares.leave(sequence)
    assert len(shares._served) == fairness.MAX_IDLE_USERS
    shares.arrive(sequence := waiting("user-3"))
    assert shares.served(sequence) == 0.0


def test_offline_and_background_work_do_not_cost_their_user_the_place_in_the_chat() -> None:
    shares = FairShares()
    bulk, warm = waiting("u", is_offline=True), waiting("u", is_background=True)
    chat, other = waiting("u"), waiting("v")
    for sequence in (bulk, warm, chat, other):
        shares.arrive(sequence)
    shares.charge(bulk, 10)
    shares.charge(warm, 10)
    assert shares.served(chat) == 0.0
    assert order(shares, [chat, other]) == ["u", "v"]


def test_who_was_preempted_goes_on_before_others_start_whatever_the_shares() -> None:
    shares, classes = FairShares(), Classes(60.0)
    interrupted, poorer = waiting("richer"), waiting("poorer")
    for sequence in (poorer, interrupted):
        shares.arrive(sequence)
    shares.charge(interrupted, 10)
    assert in_order([poorer, interrupted], classes, shares, FirstCome(), 0.0) == [poorer, interrupted]
    interrupted.prompt_done = 10
    assert in_order([poorer, interrupted], classes, shares, FirstCome(), 0.0) == [interrupted, poorer]
