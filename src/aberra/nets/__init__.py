"""Networks without losses: m members of one architecture in one tensor program."""
