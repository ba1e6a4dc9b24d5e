"""What a user asks of a run: how good its vectors are beside others, and what it learnt."""
