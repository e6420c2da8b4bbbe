"""What other processes may ask of an open store. One module for each kind of question.

A verb is a function of the peer that asks (`serving.Peer`) and its arguments. It answers with a
plain value, or with a `Stream` of Arrow batches. Each module lists its own in `VERBS`, and
`table` puts them together. Arguments come from a stranger: every one is taken through
`serving.Arguments`, which refuses what is not of the kind that is asked for.
"""
