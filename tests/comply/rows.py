"""Rows that generated requests can name: without them every request with an id would only be told that it is unknown.

Made through the API as a person makes them, some of each kind. Knows no schema.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import count, cycle
from typing import Any
from uuid import uuid4

import httpx2

from tests.patience import PATIENCE_S

NUM_OF_EACH = 3
QUESTION = "When are your opening hours?"
PLACES = ("Paris", "Rome", "Oslo")
RULE = {"keywords": ["opening hours"], "mode": "exact", "sharing": "public", "ttl_s": 3600}


class Rows:
    """Makes what a parameter of a path names, by that name."""

    def __init__(self, person: httpx2.Client) -> None:
        self._person = person
        self._places = cycle(PLACES)
        self._priorities = count(1)
        self._halls = count(1)
        self._compared: int | None = None

    def of(self, names: Iterable[str]) -> dict[str, list[Any]]:
        """Ids for each of `names` that stands for a row."""
        return {name: [MAKERS[name](self) for _ in range(NUM_OF_EACH)] for name in names if name in MAKERS}

    def forget_rules(self) -> None:
        """They are everybody's: one that somebody else made would take the questions that are asked here."""
        for rule in self.every_rule():
            self._person.delete(f"/api/cache/rules/{rule}").raise_for_status()

    def every_rule(self) -> list[Any]:
        """All of them, as an order wants them."""
        return self._every("/api/cache/rules")

    def _every(self, path: str) -> list[Any]:
        """The ids of all that is listed there."""
        listed = self._person.get(path).raise_for_status().json()
        return [row["id"] for row in (listed if isinstance(listed, list) else listed["items"])]

    def conversation(self, **wishes: Any) -> str:
        return str(self._post("/api/conversations", wishes)["id"])

    def answer(self, text: str = QUESTION, **wishes: Any) -> dict[str, Any]:
        asked = {"client_message_id": str(uuid4()), "text": text}
        path = f"/api/conversations/{self.conversation(**wishes)}/messages?wait=60"
        told: dict[str, Any] = self._post(path, asked)
        assert told["answer"]["state"] == "complete", told
        return told

    def talk(self) -> str:
        """A conversation in which something was said."""
        return str(self.answer()["conversation"])

    def message(self) -> str:
        """An answer that its limit cut: it can be continued, rated, and made again."""
        return str(self.answer(parameters={"max_tokens": 1})["answer"]["id"])

    def generation(self) -> str:
        return str(self.answer()["answer"]["generation"]["id"])

    def template(self) -> int:
        return int(self._post("/api/templates", {"title": "Hours", "body": "In {{place}}?"})["id"])

    def share(self) -> str:
        return str(self._post(f"/api/conversations/{self.talk()}/shares", None)["id"])

    def receipt(self) -> str:
        response = self._person.delete(f"/api/conversations/{self.conversation()}")
        return str(response.raise_for_status().json()["receipt"])

    def key(self) -> str:
        return str(self._post("/api/keys", {"name": "of a test"})["id"])

    def secret(self) -> str:
        return str(self._post("/api/me/export", None)["url"]).rsplit("/", 1)[-1]

    def rule(self) -> int:
        """One that is tried before all others."""
        first = {"name": f"of a test {uuid4()}", "priority": -next(self._priorities)}
        return int(self._post("/api/cache/rules", RULE | first)["id"])

    def entry(self) -> int:
        """The stored answer to a question that a rule takes."""
        self.rule()
        place = next(self._places)
        self.answer(f"When are your opening hours in {place}?")
        return int(self._every(f"/api/cache/entries?q={place}")[0])

    def case(self) -> int:
        # There is one of a kind, also of those that a run of requests before made.
        asked = {"question": f"Is hall {uuid4()} open?", "expected": "miss"}
        return int(self._post("/api/cache/cases", asked)["id"])

    def comparison(self) -> int:
        """The only one: a person has one at a time, and it waits for a worker, which this site has not."""
        if self._compared is None:
            asked = {"text": QUESTION, "entry": self.entry()}
            self._compared = int(self._post("/api/cache/comparisons", asked)["id"])
        return self._compared

    def cache_import(self) -> int:
        rule = str(self.rule())
        # A question of its own: what an import before it stored is not imported again.
        text = f"question,answer\nWhat are the opening hours of hall {next(self._halls)}?,Nine to five.\n"
        # The new rule is in force within two seconds; until then another one takes the question.
        give_up_at = time.monotonic() + PATIENCE_S
        while refused := self._import(rule, text, dry_run="true")["refused"]:
            assert refused[0]["why"] == "other-rule", refused
            assert time.monotonic() < give_up_at, "the rule did not come into force"
            time.sleep(0.1)
        return int(self._import(rule, text)["id"])

    def _import(self, rule: str, text: str, **wishes: str) -> Any:
        file = {"file": ("answers.csv", text.encode(), "text/csv")}
        response = self._person.post("/api/cache/imports", data={"rule": rule} | wishes, files=file)
        return response.raise_for_status().json()

    def _post(self, path: str, body: Any) -> Any:
        return self._person.post(path, json=body).raise_for_status().json()


MAKERS: dict[str, Callable[[Rows], Any]] = {
    "conversation": Rows.talk,
    "message": Rows.message,
    "generation": Rows.generation,
    "template": Rows.template,
    "share": Rows.share,
    "receipt": Rows.receipt,
    "key_id": Rows.key,
    "secret": Rows.secret,
    "rule_id": Rows.rule,
    "every_rule": Rows.every_rule,
    "entry_id": Rows.entry,
    "import_id": Rows.cache_import,
    "case_id": Rows.case,
    "comparison_id": Rows.comparison,
}
