"""Processes die in mid-answer: nothing acknowledged is lost, every end is clear, what was seen is what is stored."""

from __future__ import annotations

import asyncio
import json

from inference.testing import script_text
from tests.chaos.oracle import Answer, Tab, check
from tests.chaos.stack import Stack
from tests.chaos.wire import Wire

LONG = script_text(tokens=120, delay_ms=15)
ENDLESS = script_text(tokens=2000, delay_ms=15)


async def test_a_dead_core_ends_its_answers_and_the_next_one_works(stack: Stack, tab: Tab) -> None:
    names = [await tab.send(ENDLESS) for _ in range(5)]
    for name in names:
        await tab.has_text(name)
    stack.engine.kill_core()
    for name in names:
        answer = await tab.ended(name)
        assert answer.state == "failed"
        assert answer.text
        assert answer.done is not None
        assert answer.done["is_retryable"]
    # Asked while the core is away: it waits for the next one.
    assert (await tab.ended(await tab.send("and now?"))).state == "complete"
    check(stack, tab)


async def test_a_dead_front_leaves_interrupted_answers(stack: Stack, tab: Tab) -> None:
    names = [await tab.send(ENDLESS) for _ in range(3)]
    for name in names:
        await tab.has_text(name)
    await stack.engine.kill_front()
    await stack.engine.start()
    for name in names:
        assert (await tab.ended(name)).state in ("interrupted", "failed")
    assert (await tab.ended(await tab.send("and now?"))).state == "complete"
    check(stack, tab)


async def test_a_dead_web_process_is_replaced_in_mid_answer(stack: Stack, tab: Tab) -> None:
    dying = stack.webs[-1]
    names = [await tab.send(LONG) for _ in range(5)]
    for name in names:
        await tab.has_text(name)
    dying.kill()
    unsent = await tab.send("sent while nobody listens")
    await stack.start_web()
    for name in [*names, unsent]:
        assert (await tab.ended(name)).state == "complete"
    assert tab.close_codes == [1006]
    check(stack, tab)


async def test_another_web_process_follows_and_adopts(stack: Stack, tab: Tab, second_tab: Tab) -> None:
    name = await tab.send(LONG)
    accepted = await tab.accepted(name)
    await tab.has_text(name)
    first = stack.webs[-1]
    await stack.start_web()
    seen = second_tab.answers[accepted["generation"]] = Answer(accepted["generation"])
    await second_tab.reconnect()  # to the newest process
    await second_tab.until(lambda: seen.text)
    first.kill()
    assert (await tab.ended(name)).state == "complete"
    await second_tab.until(lambda: seen.done)
    assert seen.text == tab.answers[accepted["generation"]].text
    check(stack, tab)


async def test_a_stopping_web_process_hands_over(stack: Stack, tab: Tab) -> None:
    stopping = stack.webs[-1]
    name = await tab.send(script_text(tokens=200, delay_ms=20))
    await tab.has_text(name)
    stopping.terminate()
    assert await stopping.ended() == 0
    await stack.start_web()
    assert (await tab.ended(name)).state == "complete"
    assert set(tab.close_codes) == {4012}  # also at each try to come back before it was gone
    check(stack, tab)


async def test_double_sends_from_many_sockets_are_one_row(stack: Stack, tab: Tab, second_tab: Tab) -> None:
    await tab.connected()
    await second_tab.connected()
    names = []
    for number in range(10):
        name = await tab.send(f"message {number}")
        names.append(name)
        second_tab.sent[name] = tab.sent[name]
        await asyncio.gather(*(sender.say(tab.outbox[name]) for sender in (tab, second_tab, second_tab, tab)))
    for name in names:
        await tab.ended(name)
        await second_tab.ended(name)
    check(stack, tab, second_tab)


async def test_stop_from_another_process_ends_it_at_once(stack: Stack, tab: Tab, second_tab: Tab) -> None:
    name = await tab.send(ENDLESS)
    answer = await tab.has_text(name)
    await stack.start_web()
    await second_tab.reconnect()  # to the newest process
    await second_tab.stop_answer(answer.generation)
    assert (await tab.ended(name)).state == "stopped"
    check(stack, tab)


async def test_clients_that_never_read_do_not_grow_the_process(stack: Stack, tab: Tab) -> None:
    name = await tab.send("something long")
    generation = (await tab.ended(name)).generation
    stack.sql(
        "UPDATE chat_message SET text = repeat('x', 1048576) WHERE id ="
        " (SELECT message_id FROM chat_generation WHERE id = %s)",
        generation,
    )
    web = stack.webs[-1]
    headers = {"Origin": stack.origin, "Cookie": tab.cookie}

    async def open_deaf() -> Wire:
        return await Wire.open(web.port, "/ws/chat", headers, receive_buffer=4096)

    deaf = [await open_deaf() for _ in range(4)]
    attach = json.dumps({"type": "attach", "generation": generation})

    async def ask_for_more(num_rounds: int) -> None:
        for _ in range(num_rounds):
            for place, wire in enumerate(deaf):
                try:
                    await wire.send(attach)
                except ConnectionError:  # it has read nothing for too long, which closes it
                    deaf[place] = await open_deaf()
            # The site still answers others meanwhile.
            await tab.ended(await tab.send("hello?"))

    try:
        await ask_for_more(12)  # until a frame or two is kept for each of them, and the heap has its size
        before = web.rss_bytes()
        await ask_for_more(36)  # 4 x 36 MiB
        assert web.rss_bytes() - before < 64 * 2**20
    finally:
        for wire in deaf:
            wire.vanish()
