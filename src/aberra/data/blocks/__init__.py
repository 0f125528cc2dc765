"""Tables of any size, block by block, and what can be learnt from blocks and added up.

A source is a list of parts (`parts`), cut into tasks that anybody may work on in any order. What is
learnt from a task is a state: empty to begin with, a block can be added, two can be combined.
`Sample`, `ScoreSketch` and the counts of columns are such states, and none of them depends on how
the rows were cut or in which order they came.
"""
