"""What is asked: texts that are given and wanted back, whole, changed or shorter, and questions with nothing to quote.

Knows words only.
"""

from __future__ import annotations

PASSAGE = """\
The harbour of Lindholm was built in 1874 by a company of merchants from the north coast. Its two stone piers \
reach four hundred metres into the bay, and the lighthouse at the end of the western pier has guided ships \
since 1881. Until the war most of the grain of the province left through this harbour. In 1952 the railway to \
the docks was closed, and the warehouses along the quay stood empty for twenty years. Today they hold a \
museum, a school for boat builders and a market, which is open on Tuesdays and Saturdays. Every summer the \
town holds a regatta in the bay, and some three thousand visitors come to watch it from the piers."""

CODE = """class Account:
    def __init__(self, owner, balance):
        self.owner = owner
        self.balance = balance

    def deposit(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance = self.balance + amount
        return self.balance

    def withdraw(self, amount):
        if amount <= 0:
            raise ValueError("amount must be positive")
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance = self.balance - amount
        return self.balance"""

GROUNDED = {
    "quote": [
        f"Repeat the following text word for word.\n\n{PASSAGE}",
        f"Quote the first three sentences of this text.\n\n{PASSAGE}",
        f"Copy this code exactly.\n\n{CODE}",
        f"Write out the last three sentences of this text again.\n\n{PASSAGE}",
    ],
    "edit": [
        f"Write this text again, but call the town Norrby instead of Lindholm.\n\n{PASSAGE}",
        f"Write this code again, but rename the method deposit to put.\n\n{CODE}",
        f"Correct the mistakes in this text and write it out.\n\n{PASSAGE.replace('harbour', 'harbuor')}",
        f"Write this text again in the present tense.\n\n{PASSAGE}",
    ],
    "summarise": [
        f"Summarise this text in three sentences.\n\n{PASSAGE}",
        f"What does this code do?\n\n{CODE}",
        f"What does this text say about the history of the harbour?\n\n{PASSAGE}",
        f"List the facts of this text.\n\n{PASSAGE}",
    ],
}
FREE = [
    "Write a short story about an old clock.",
    "Why do leaves change their colour in autumn?",
    "Give me some advice for a long journey by train.",
    "Describe a morning in a large city.",
]
