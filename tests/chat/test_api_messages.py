"""Messages over HTTP: asked once however often they are sent, answered whole or to be followed, read in pages."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.test import AsyncClient

from chatsite.accounts import keys
from chatsite.accounts.models import User
from chatsite.chat.live import LiveAnswer
from chatsite.chat.models import Conversation, Generation, Message
from chatsite.chat.running import running
from chatsite.db import run_in_db
from inference.testing import script_text
from tests.chat.api_client import KIND, events_of, read
from tests.chat.socket import Socket, utf16_length

URL = "/api/conversations"


async def new_conversation(client: AsyncClient, **fields: Any) -> str:
    answer = await client.post(URL, fields, content_type=KIND)
    assert answer.status_code == 201
    return str(answer.json()["id"])


async def asked(client: AsyncClient, where: str, text: str, query: str = "?wait=60", **fields: Any) -> Any:
    body = {"client_message_id": str(uuid4()), "text": text} | fields
    headers = body.pop("headers", {})
    url = f"{URL}/{where}/messages{query}"
    return await client.post(url, json.dumps(body), content_type=KIND, headers=headers)


async def test_a_question_is_answered_whole_when_one_waits(page: AsyncClient) -> None:
    conversation = await new_conversation(page, system_prompt="Be brief.", tags=["a"])
    name = str(uuid4())
    first = await asked(page, conversation, "one", client_message_id=name)
    assert (first.status_code, first["Preference-Applied"]) == (201, "wait")
    body = first.json()
    assert (body["question"]["text"], body["answer"]["text"]) == ("one", "You said: one (1 word)")
    assert body["answer"]["generation"]["state"] == body["answer"]["state"] == "complete"
    again = await asked(page, conversation, "one", client_message_id=name)
    assert (again.status_code, again.json()) == (200, body)
    other = await asked(page, conversation, "two", client_message_id=name)
    assert (other.status_code, other.json()["error"]["code"]) == (422, "id_reused")
    preferred = await asked(page, conversation, "three", "", headers={"Prefer": 'respond-async, wait="60"'})
    assert preferred.status_code == 201
    assert preferred.json()["question"]["parent"] == body["answer"]["id"]
    for odd in ("?wait=-1", "?wait=nan", "?wait=1e9"):
        assert (await asked(page, conversation, "x", odd)).status_code == 400


async def test_without_waiting_the_answer_is_to_be_followed(page: AsyncClient) -> None:
    conversation = await new_conversation(page)
    name = str(uuid4())
    text = script_text(tokens=60, delay_ms=5)
    answer = await asked(page, conversation, text, "", client_message_id=name)
    assert answer.status_code == 202
    repeated = await asked(page, conversation, text, "?wait=0.01", client_message_id=name)
    assert repeated.status_code == 200
    assert repeated.json()["answer"]["id"] == answer.json()["answer"]["id"]
    frames = events_of(await read(await page.get(answer.json()["events"])))
    assert (frames[-1]["type"], frames[-1]["state"]) == ("done", "complete")


async def test_edits_and_other_answers_are_branches(page: AsyncClient) -> None:
    conversation = await new_conversation(page)
    first = (await asked(page, conversation, "one")).json()
    second = (await asked(page, conversation, "two")).json()
    edited = (await asked(page, conversation, "two, edited", parent=first["answer"]["id"])).json()
    begun = (await asked(page, conversation, "one, edited", parent=None)).json()
    assert edited["question"]["variants"] == [second["question"]["id"], edited["question"]["id"]]
    assert begun["question"]["variants"] == [first["question"]["id"], begun["question"]["id"]]
    name = {"client_message_id": str(uuid4())}
    url = f"/api/messages/{second['answer']['id']}/answers?wait=60"
    again = await page.post(url, name, content_type=KIND)
    assert again.status_code == 201
    variants = again.json()["answer"]["variants"]
    assert variants == [second["answer"]["id"], again.json()["answer"]["id"]]
    repeated = await page.post(url, name, content_type=KIND)
    assert (repeated.status_code, repeated.json()) == (200, again.json())
    shown = (await page.get(f"{URL}/{conversation}")).json()
    assert (shown["active_leaf"], shown["num_messages"]) == (variants[1], 9)
    listed = (await page.get(f"{URL}/{conversation}/messages")).json()["items"]
    assert [message["text"] for message in listed][::2] == ["one", "two"]
    for bad in (first["question"]["id"], str(uuid4())):
        assert (await asked(page, conversation, "x", parent=bad)).status_code in (400, 404)


def grown(user: User) -> tuple[Conversation, list[UUID]]:
    """250 turns, and beside the last question of the first half another branch."""
    row = Conversation.objects.create(owner=user)
    messages: list[Message] = []
    for number in range(500):
        role = ("user", "assistant")[number % 2]
        parent = messages[-1] if messages else None
        messages.append(Message(conversation=row, role=role, text=str(number), parent=parent))
    Message.objects.bulk_create(messages)
    side = Message.objects.create(conversation=row, role="user", text="side", parent=messages[249])
    leaf = Message.objects.create(conversation=row, role="assistant", text="side answer", parent=side)
    Conversation.objects.filter(pk=row.pk).update(active_leaf=messages[-1])
    return row, [*(message.pk for message in messages), side.pk, leaf.pk]


async def test_long_conversations_are_read_in_pages(page: AsyncClient, user: User) -> None:
    row, ids = await run_in_db(grown, user)
    url = f"{URL}/{row.pk}/messages"

    async def texts(**query: Any) -> list[str]:
        answer = await page.get(url, query)
        assert answer.status_code == 200, answer.content
        return [message["text"] for message in answer.json()["items"]]

    line = [str(number) for number in range(500)]
    branch = [*line[:250], "side", "side answer"]
    for query, expected in (
        ({}, line[450:]),
        ({"limit": 7, "before": ids[10]}, line[3:10]),
        ({"limit": 7, "after": ids[495]}, line[496:]),
        ({"limit": 4, "around": ids[100]}, line[98:102]),
        ({"limit": 9, "around": ids[1]}, line[:9]),
        ({"limit": 9, "around": ids[499]}, line[491:]),
        ({"limit": 4, "around": ids[500]}, branch[-4:]),
        ({"limit": 3, "branch": ids[500]}, branch[-3:]),
        ({"limit": 3, "branch": ids[501], "before": ids[500]}, branch[247:250]),
        ({"limit": 2, "branch": "all"}, ["side", "side answer"]),
        ({"limit": 1, "after": ids[499]}, []),
    ):
        assert await texts(**query) == expected, query
    seen, query = [], {"branch": "all", "limit": 200}
    while True:
        read_page = (await page.get(url, query)).json()
        seen = [message["text"] for message in read_page["items"]] + seen
        if read_page["before"] is None:
            break
        query["before"] = read_page["before"]
    assert seen == [*line, "side", "side answer"]
    forked = (await page.get(url, {"around": str(ids[250]), "limit": 1})).json()["items"][0]
    assert forked["variants"] == [str(ids[250]), str(ids[500])]
    for bad in ({"before": uuid4()}, {"around": uuid4()}, {"branch": uuid4()}, {"before": ids[500]}):
        assert (await page.get(url, bad)).status_code == 404
    for bad in ({"before": ids[1], "after": ids[1]}, {"limit": 201}, {"limit": 0}, {"branch": "x"}):
        assert (await page.get(url, bad)).status_code == 400


async def test_a_page_is_read_with_few_queries(
    page: AsyncClient, user: User, django_assert_max_num_queries: Any
) -> None:
    from chatsite.chat import branches

    row, _ = await run_in_db(grown, user)

    def count() -> None:
        with django_assert_max_num_queries(3):
            branches.read(user.pk, row.pk, "active", None, 200)

    await run_in_db(count)


async def text_after(client: AsyncClient, url: str, text: str, after: int, by_header: bool) -> str:
    """The text of a reader who had `text` up to `after` and connects again; every frame must fit."""
    query, headers = ({}, {"Last-Event-ID": str(after)}) if by_header else ({"after": after}, {})
    frames = events_of(await read(await client.get(url, query, headers=headers)))
    for frame in frames:
        if frame["type"] == "snapshot":
            text = frame["text"]
        elif frame["type"] == "delta":
            assert frame["offset"] == utf16_length(text)
            text += frame["text"]
    assert (frames[-1]["type"], frames[-1]["length"]) == ("done", utf16_length(text))
    return text


async def test_whoever_connects_again_gets_what_is_missing_and_no_more(
    page: AsyncClient, config: Any
) -> None:
    """At every number, while the answer is made and after its end."""
    config(coalesce_tokens=1)
    conversation = await new_conversation(page)
    pieces = ["你", "好 ", "🌤", "️ so", " it", " goes", " on", "!"]
    question = script_text(pieces=pieces, delay_ms=100)
    answer = (await asked(page, conversation, question, "")).json()
    live = running().get(UUID(answer["answer"]["generation"]["id"]))
    assert live is not None
    stream = (await page.get(answer["events"])).streaming_content
    held: dict[int, str] = {0: ""}
    text = ""
    async for chunk in stream:
        for frame in events_of(chunk):
            text = text + frame["text"] if frame["type"] == "delta" else frame.get("text", text)
            if "seq" in frame:
                assert f"id: {frame['seq']}\n".encode() in chunk
                held[frame["seq"]] = text
        if len(held) == 4:  # in the middle
            again = await text_after(page, answer["events"], text, max(held), by_header=True)
            assert again == "".join(pieces)
    assert text == "".join(pieces)
    assert len(held) > 4
    for after, known in held.items():
        assert await text_after(page, answer["events"], known, after, by_header=False) == text
    for odd in ("x", "-1", "9" * 40, "²"):
        headers = {"Last-Event-ID": odd}
        frames = events_of(await read(await page.get(answer["events"], headers=headers)))
        assert frames[0]["text"] == text


def test_a_text_is_cut_only_where_a_piece_ends() -> None:
    live = LiveAnswer(uuid4())
    for seq, text in ((1, "a"), (3, "b"), (4, "c")):
        live.add_text(seq, text, 1)
    cuts = {after: live.cut(after) for after in range(6)}
    found = {after: (cut.text, cut.num_pieces) for after, cut in cuts.items() if cut}
    assert found == {1: ("a", 1), 3: ("ab", 2), 4: ("abc", 3)}


async def test_a_stream_after_the_last_number_sends_nothing_twice(page: AsyncClient) -> None:
    conversation = await new_conversation(page)
    answer = (await asked(page, conversation, "one")).json()
    whole = events_of(await read(await page.get(answer["events"])))
    rest = events_of(await read(await page.get(answer["events"], {"after": whole[0]["seq"]})))
    assert [frame["type"] for frame in rest] == ["done"]


async def test_a_key_does_what_a_session_does_and_reads_no_cookie(
    page: AsyncClient, user: User, other_user: User
) -> None:
    key, secret = await run_in_db(keys.create_key, user, "k", ["chat"])
    await page.get("/")
    headers = {"Authorization": f"Bearer {secret}"}
    conversation = (await page.post(URL, {}, content_type=KIND, headers=headers)).json()["id"]
    answer = await asked(AsyncClient(), conversation, "one", headers=headers)
    assert answer.status_code == 201
    generation = answer.json()["answer"]["generation"]["id"]
    assert (await run_in_db(Generation.objects.get, pk=generation)).api_key_id == key.pk
    _, foreign = await run_in_db(keys.create_key, other_user, "k", ["chat"])
    own_cookie_foreign_key = await page.get(
        f"{URL}/{conversation}", headers={"Authorization": f"Bearer {foreign}"}
    )
    assert own_cookie_foreign_key.status_code == 404
    _, narrow = await run_in_db(keys.create_key, user, "k", ["embeddings"])
    refused = await page.get(URL, headers={"Authorization": f"Bearer {narrow}"})
    assert refused.status_code == 403


async def test_what_is_somebody_elses_cannot_be_told_from_what_is_not_there(
    page: AsyncClient, stranger: AsyncClient, socket: Socket
) -> None:
    accepted, _ = await socket.ask("private")
    unknown = {name: str(uuid4()) for name in accepted}
    again = {"client_message_id": str(uuid4())}

    async def answers(ids: dict[str, Any]) -> list[Any]:
        conversation, message = f"{URL}/{ids['conversation']}", f"/api/messages/{ids['answer']}"
        bulk = {"action": "delete", "ids": [ids["conversation"]]}
        return [
            await stranger.get(f"{conversation}/messages"),
            await asked(stranger, ids["conversation"], "x"),
            await stranger.post(f"{message}/answers", again, content_type=KIND),
            await stranger.put(f"{message}/feedback", {"verdict": "up"}, content_type=KIND),
            await stranger.delete(f"{message}/feedback"),
            await stranger.post(f"{URL}/bulk", bulk, content_type=KIND),
        ]

    for foreign, missing in zip(await answers(accepted), await answers(unknown), strict=True):
        assert foreign.status_code == missing.status_code == 404
        assert foreign.content == missing.content
    mine = (await asked(stranger, await new_conversation(stranger), "mine")).json()
    mixed = await asked(page, accepted["conversation"], "x", parent=mine["answer"]["id"])
    assert mixed.status_code == 404


@pytest.mark.parametrize("action", ["archive", "tag", "delete"])
async def test_many_are_changed_together_or_not_at_all(
    page: AsyncClient, stranger: AsyncClient, action: str
) -> None:
    ids = [await new_conversation(page, title=str(number), tags=["old"]) for number in range(3)]
    foreign = await new_conversation(stranger)

    async def left() -> list[tuple[str, bool, list[str]]]:
        rows = Conversation.objects.exclude(pk=foreign).order_by("title")
        return await run_in_db(list, rows.values_list("title", "is_archived", "tags"))

    before = await left()
    body = {"action": action, "tag": "new"}
    for bad in ([*ids, foreign], [*ids, str(uuid4())], [], [str(uuid4())] * 201):
        answer = await page.post(f"{URL}/bulk", body | {"ids": bad}, content_type=KIND)
        assert answer.status_code in (400, 404)
    assert await left() == before
    answer = await page.post(f"{URL}/bulk", body | {"ids": [*ids, ids[0]]}, content_type=KIND)
    assert (answer.status_code, answer.json()["num_changed"]) == (200, 3)
    expected = {
        "archive": [(title, True, tags) for title, _, tags in before],
        "tag": [(title, archived, [*tags, "new"]) for title, archived, tags in before],
        "delete": [],
    }
    assert await left() == expected[action]
    if action == "tag":
        listed = (await page.get(URL, {"tag": "new"})).json()["items"]
        assert [row["title"] for row in listed] == ["2", "1", "0"]
        assert (await page.get(URL, {"tag": "ne"})).json()["items"] == []


async def test_nobody_posts_what_is_not_theirs_to_set(page: AsyncClient, user: User) -> None:
    """Owner, states, scopes and times are the server's."""
    for field in ("owner", "owner_id", "id", "is_staff", "active_leaf", "created_at", "num_messages"):
        assert (await page.post(URL, {field: 1}, content_type=KIND)).status_code == 400
    conversation = await new_conversation(page, tags=[" a ", "a"])
    for field in ("role", "state", "id", "token_ids", "generation", "conversation"):
        assert (await asked(page, conversation, "x", **{field: "assistant"})).status_code == 400
    for bad in ({"tags": [" "]}, {"tags": ["x" * 41]}, {"tags": ["x"] * 21}, {"parameters": {"model": "x"}}):
        answer = await page.patch(f"{URL}/{conversation}", bad, content_type=KIND)
        assert answer.status_code == 400, bad
    row = await run_in_db(Conversation.objects.get, pk=conversation)
    assert (row.owner_id, row.tags) == (user.pk, ["a"])


async def test_only_an_answer_at_an_end_can_be_the_active_leaf(page: AsyncClient) -> None:
    conversation = await new_conversation(page)
    first = (await asked(page, conversation, "one")).json()
    second = (await asked(page, conversation, "two")).json()
    branch = (await asked(page, conversation, "one, edited", parent=None)).json()
    other = (await asked(page, await new_conversation(page), "other")).json()
    url = f"{URL}/{conversation}"
    for leaf, status in (
        (first["answer"]["id"], 400),
        (second["question"]["id"], 400),
        (other["answer"]["id"], 400),
        (second["answer"]["id"], 200),
        (branch["answer"]["id"], 200),
    ):
        answer = await page.patch(url, {"active_leaf": leaf}, content_type=KIND)
        assert answer.status_code == status
    assert answer.json()["active_leaf"] == branch["answer"]["id"]


async def test_a_thumb_can_be_taken_back(page: AsyncClient, socket: Socket) -> None:
    accepted, _ = await socket.ask("hello")
    url = f"/api/messages/{accepted['answer']}/feedback"
    said = []
    for change in (page.put(url, {"verdict": "down", "reason": "no"}, content_type=KIND), page.delete(url)):
        assert (await change).status_code == 204
        listed = (await page.get(f"{URL}/{accepted['conversation']}/messages")).json()["items"]
        said.append(listed[-1]["feedback"])
    assert said == ["down", None]
    assert (await page.delete(url)).status_code == 204


async def test_an_answer_that_was_cut_goes_on_where_it_ended(page: AsyncClient, user: User) -> None:
    """What it says in the end is what it would have said at once; the old one stays as it was."""
    conversation = await new_conversation(page, parameters={"max_tokens": 9})
    question = script_text(text="一二三 four five six seven eight nine ten")
    first = (await asked(page, conversation, question)).json()["answer"]
    assert first["generation"]["finish_reason"] == "length"
    whole, last, ids = first["text"], first, [first["id"]]
    while last["generation"]["finish_reason"] == "length":
        url, name = f"/api/messages/{last['id']}/continue", {"client_message_id": str(uuid4())}
        answer = await page.post(f"{url}?wait=60", name, content_type=KIND)
        assert answer.status_code == 201, answer.content
        repeated = await page.post(f"{url}?wait=60", name, content_type=KIND)
        assert (repeated.status_code, repeated.json()) == (200, answer.json())
        last = answer.json()["answer"]
        assert last["text"].startswith(whole)
        assert len(last["text"]) > len(whole) or last["generation"]["finish_reason"] == "stop"
        whole, ids = last["text"], [*ids, last["id"]]
    assert whole == "一二三 four five six seven eight nine ten"
    assert last["variants"] == ids
    stored = await run_in_db(Message.objects.get, pk=last["id"])
    kept = await run_in_db(Message.objects.get, pk=first["id"])
    assert (kept.text, stored.token_ids[:9]) == (first["text"], kept.token_ids)
    frames = events_of(await read(await page.get(answer.json()["events"])))
    assert frames[0]["text"] == whole
    # An id that is another message's is refused, whichever that is.
    for other in (kept, await run_in_db(Message.objects.get, pk=kept.parent_id)):
        used = {"client_message_id": str(other.client_message_id or uuid4())}
        await run_in_db(Message.objects.filter(pk=other.pk).update, **used)
        refused = await page.post(f"/api/messages/{kept.pk}/continue", used, content_type=KIND)
        assert (refused.status_code, refused.json()["error"]["code"]) == (422, "id_reused")
    for message in (last["id"], last["parent"]):
        refused = await page.post(
            f"/api/messages/{message}/continue", {"client_message_id": str(uuid4())}, content_type=KIND
        )
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "not_continuable")
