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

FORMULAS = r"""The roots of \(a x^2 + b x + c = 0\) are

$$x = \frac{-b \pm \sqrt{b^2 - 4ac}}{2a}$$

so the sign of $\Delta = b^2 - 4ac$ says how many real ones there are. A worked example:

| case | \(\Delta\) | real roots |
|---|---:|---:|
| \(x^2 - 3x + 2\) | 1 | 2 |
| \(x^2 + 1\) | -4 | 0 |

\[\sum_{k=1}^{n} k^2 = \frac{n(n+1)(2n+1)}{6}\]

A ticket for $8 and one for $14 stay prices."""
CHINESE = """天空呈蓝色，是因为**瑞利散射**：空气分子对波长较短的蓝光散射得更强，于是从各个方向进入眼睛的多是蓝光。

1. 太阳光包含各种颜色，进入大气后与 N₂、O₂ 等分子相遇。
2. 散射强度与波长的四次方成反比，蓝光约为红光的 5 倍。
3. 傍晚光线穿过的空气更厚，蓝光大多已被散射掉，所以晚霞偏红。

```python
print("散射比", (700 / 450) ** 4)
```"""

READS_LONG = "What does this long contract say about notice?"
ANSWERS: dict[str, dict[str, Any]] = {
    "Why is the sky blue?": {"text": SKY, "delay_ms": 12, "first_delay_ms": 150},
    "And why are sunsets red?": {"text": SUNSET, "delay_ms": 12, "first_delay_ms": 80},
    "Will it rain on Sunday?": {"text": RAIN, "delay_ms": 4},
    "How does a binary search work?": {"text": SEARCH, "delay_ms": 1},
    "Tell me something that breaks.": {"text": SKY, "fail_after": 60},
    "How are quadratic equations solved?": {"text": FORMULAS, "delay_ms": 1},
    "天空为什么是蓝色的？": {"text": CHINESE, "delay_ms": 1},
    READS_LONG: {"text": SKY, "first_delay_ms": 120000},
    "Think for a long time.": {"text": SUNSET, "first_delay_ms": 120000},
}
