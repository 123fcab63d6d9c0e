"""Whether answers are right and rightly shared: checks, budgets, complaints, promotion, and what look-ups did."""
