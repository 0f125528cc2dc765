"""Networks, m members of one architecture at once; losses only where training is compiled."""
