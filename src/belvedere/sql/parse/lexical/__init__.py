"""Text to tokens, and tokens to text.

In reading order; an entry uses only those before it:

    escapes       escapes in string constants
    keywords      keywords, and which of them may be names
    lexer         text to tokens, by PostgreSQL's lexical rules
    literal_shape  takes the literals out of a text without parsing it
    render        renders tokens to SQL text in one canonical spelling
    token_cursor  the cursor over the tokens of a text, with the rules that all parsers share
"""
