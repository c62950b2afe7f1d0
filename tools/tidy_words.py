"""Rules of wording for comments and pages: they name things, and parts act in them, not persons."""

import io
import re
import tokenize

# A comment opens with what the thing is.
OPENING = re.compile(r"(Of|Has|Have|Those|That|Nothing|What|Who|Whose|Which|How|Whether|Knows)\b")
# Persons, and verbs of persons.
PERSONS = re.compile(
    r"\b(nobody|whoever|somebody|someone|everybody|hears?|heard|tells?|told|goes on|go on|went on|is over|those that"
    r"|those who|who)\b", re.IGNORECASE)
COMMENT = re.compile(r"(?:^|\s)//[/!]?<?\s?(.*)")
# Pages that keep their wording: what was, and texts for other readers.
PAGES_LEFT_OUT = ("CHANGELOG.md", "CODE_OF_CONDUCT.md")


def cpp_comments(text):
    """Each line of a comment as (number, text, whether it opens a comment)."""
    continued = False
    for number, line in enumerate(text.split("\n"), 1):
        match = COMMENT.search(line)
        is_whole = line.strip().startswith("//")
        if match and '"' not in line[:match.start()]:
            yield number, match.group(1), not (continued and is_whole)
        continued = is_whole


def python_comments(text):
    """The same of a Python file; docstrings are comments."""
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        number = token.start[0]
        is_alone = token.line.strip().startswith(("#", '"""'))
        if token.type == tokenize.COMMENT:
            yield number, token.string.lstrip("# "), not (is_alone and last == number - 1)
            last = number
        elif token.type == tokenize.STRING and is_alone and token.string.startswith('"""'):
            for more, line in enumerate(token.string.split("\n")):
                yield number + more, line.strip('" '), more == 0


def page_lines(text):
    """The prose of a page. Its sentences may begin as they like."""
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line), False


def lines_of(path, text):
    if path.endswith((".cpp", ".hpp")):
        return cpp_comments(text)
    if path.endswith(".py"):
        return python_comments(text)
    if path.endswith(".md") and path not in PAGES_LEFT_OUT:
        return page_lines(text)
    return ()


def check_words(tree):
    """No comment opens with a clause in place of a noun, and none makes persons of parts."""
    for path, text in tree.files.items():
        for number, line, opens in lines_of(path, text):
            opening = OPENING.match(line) if opens else None
            if opening:
                yield path, number, f"a comment opens with \"{opening.group()}\": say first what the thing is"
                continue
            person = PERSONS.search(line)
            if person:
                yield path, number, f"\"{person.group()}\" is for persons: name the part that acts"
