"""What bounds a step and who is preferred, as the operator has set it.

Knows the settings' meanings for the scheduler; decides nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from inference.config import EngineConfig
from inference.core.gathering import Gathering

NO_GATHERING = Gathering()


@dataclass(frozen=True, slots=True)
class Limits:
    """The meanings are those of the settings of like names."""

    max_batch: int
    step_tokens: int
    interactive_batch: int = 0
    target_tpot_s: float = math.inf
    policy: str = "fcfs"
    ageing_s: float = 10.0
    fair_shares: bool = True
    gathering: Gathering = NO_GATHERING

    @classmethod
    def of(cls, config: EngineConfig) -> Limits:
        return cls(
            max_batch=config.max_batch,
            step_tokens=config.step_tokens,
            interactive_batch=config.interactive_batch,
            target_tpot_s=config.target_tpot_ms / 1000,
            policy=config.policy,
            ageing_s=config.ageing_s,
            fair_shares=config.fair_shares,
            gathering=Gathering(config.max_wait_ms / 1000, config.max_delay_ms / 1000),
        )
