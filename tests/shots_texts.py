"""The questions in the pictures, and the scripts that answer them."""

from __future__ import annotations

from typing import Any

SKY = """Sunlight is a mix of many colours. Air scatters the **short, blue waves** far more than the long, red ones, \
so from every part of the sky a little blue light reaches your eyes.

1. White light enters the air.
2. The molecules of the air scatter blue light to all sides.
3. You see that scattered light wherever you look.

Violet is scattered even more, but there is less of it in sunlight and our eyes see it less well."""
SUNSET = """In the evening the light crosses *much more air*. Nearly all the blue has been scattered away on the long \
path, so what is left for you is orange and red."""
RAIN = "Sunday looks mostly dry, with a **short shower of rain** in the late afternoon. A light coat \
will do."
SEARCH = '''# How a binary search works

A binary search finds a value in a **sorted** list by halving it again and again. It takes about \
`log2(n)` steps, so even a million entries need only *twenty* looks.

## The idea

1. Look at the middle entry.
2. If it is the value, you are done.
3. If it is larger, go on with the left half:
   - the upper bound moves down
   - the lower bound stays
4. Otherwise go on with the right half.

> The list must be sorted. On an unsorted list the answer means nothing.

```python
def find(values: list[int], wanted: int) -> int | None:
    """The place of `wanted` in the sorted `values`, or None."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < len(values) and values[low] == wanted else None
```

Here is what it costs beside a plain scan:

| entries | scan | binary search |
|--------:|-----:|:-------------:|
| 1,000 | 500 | 10 |
| 1,000,000 | 500,000 | 20 |

Use `List<String>` or <channel> freely; tickets are $8 and $14. See [the \
article](https://example.org/search) for more, or ![a diagram](https://example.org/x.png).

---

That is all. Shall I show it in another language?
'''

ANSWERS: dict[str, dict[str, Any]] = {
    "Why is the sky blue?": {"text": SKY, "delay_ms": 12, "first_delay_ms": 150},
    "And why are sunsets red?": {"text": SUNSET, "delay_ms": 12, "first_delay_ms": 80},
    "Will it rain on Sunday?": {"text": RAIN, "delay_ms": 4},
    "How does a binary search work?": {"text": SEARCH, "delay_ms": 1},
    "Tell me something that breaks.": {"text": SKY, "fail_after": 60},
    "Think for a long time.": {"text": SKY, "first_delay_ms": 120000},
}
