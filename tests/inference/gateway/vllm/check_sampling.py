"""Sampling and what may be asked of the output, through the gateway in front of a real vLLM."""

from tests.inference.contract.test_grammar import (  # noqa: F401
    test_a_grammar_that_no_answer_can_be_held_to_is_refused,
    test_answers_of_all_kinds_follow_their_grammar_side_by_side,
)
from tests.inference.contract.test_mixed_sampling import (  # noqa: F401
    test_a_bias_forces_and_bans_for_its_own_request_only,
    test_ba_03_nobody_gets_the_sampling_of_the_first_in_the_batch,
)
from tests.inference.contract.test_output import (  # noqa: F401
    test_a_request_may_name_ids_that_end_its_answer,
    test_ids_that_the_model_does_not_have_are_refused,
    test_logprobs_come_with_their_tokens_and_spell_the_answer,
    test_nothing_ends_an_answer_before_min_tokens,
)
