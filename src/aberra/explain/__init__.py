"""What can be said about a trained model and its scores: the one home of reasons and stories.

Why a row is odd (`reasons`), which training samples are doubtful (`doubts`), how the rounds went
(`rounds`), what was trained (`training`, `subject`), the numbers behind the charts (`charts`,
`scales`) and what the words mean (`glossary`). The shell, the report and the viewer only lay out
what these modules say.
"""
