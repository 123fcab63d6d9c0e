"""What every engine promises, asked of the gateway in front of a real vLLM."""

from tests.inference.contract.test_contract import *  # noqa: F403
