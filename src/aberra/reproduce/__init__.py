"""The papers' tables and figures, one command each, our numbers beside theirs."""
