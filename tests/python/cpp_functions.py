# SPDX-License-Identifier: Apache-2.0
"""Finds the functions of a C++ or CUDA file: free ones, methods, kernels, tests.

A scanner of braces, not a compiler: what precedes a brace at namespace or class level says whether
a function starts there. Lambdas belong to the function they stand in.
"""

import re

# What separates tokens but is not code, and what may hold braces without being code.
_SKIPPED = re.compile(
    r"//[^\n]*"
    r"|/\*.*?\*/"
    r'|R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"
    r"|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*",
    re.S | re.M,
)
_SCOPE = re.compile(r"(inline\s+)?(namespace|class|struct|union|enum|extern|export)\b")
_END_OF_SIGNATURE = re.compile(
    r"(\)|\b(const|noexcept|override|final|mutable|try|requires)|[&\]]|->[^(){};]*)$"
)
_NO_NAMES = {"__launch_bounds__", "__align__", "__attribute__", "alignas", "decltype", "explicit"}
_ACCESS = re.compile(r"^\s*(public|private|protected)\s*:(?!:)")


def blank(text):
    """The text with comments, strings and directives as blanks, line by line as it was."""
    return _SKIPPED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def functions(text):
    """(name, first line, number of lines) of every function of a file, in order."""
    code, scopes, start = blank(text), [], 0
    place = 0
    while place < len(code):
        mark = code[place]
        if mark == "(":
            place = _closing(code, place, "()")
        elif mark == ";" or (mark == ":" and _ACCESS.match(code[start : place + 1])):
            start = place + 1
        elif mark == "}":
            if scopes:
                scopes.pop()
            start = place + 1
        elif mark == "{":
            head = _without_template(code[start:place])
            kind = _kind(head)
            if kind == "scope":
                scopes.append(place)
                start = place + 1
            else:
                end = _closing(code, place, "{}")
                if kind == "function":
                    offset = start + len(code[start:place]) - len(head.lstrip())
                    first = code.count("\n", 0, offset) + 1
                    yield _name(head), first, code.count("\n", 0, end) + 2 - first
                    start = end + 1
                place = end
        place += 1


def _closing(code, place, pair):
    """Where the bracket that opens at `place` is closed; the end of the text if nowhere."""
    depth = 0
    for match in re.compile(rf"[{re.escape(pair)}]").finditer(code, place):
        depth += 1 if match[0] == pair[0] else -1
        if depth == 0:
            return match.start()
    return len(code)


def _without_template(head):
    """A declaration without `template <...>` and `requires ...` lines before it."""
    while match := re.match(r"\s*template\s*<", head):
        depth, end = 1, match.end()
        while end < len(head) and depth:
            if head[end] == "(":
                end = _closing(head, end, "()")
            else:
                depth += (head[end] == "<") - (head[end] == ">" and head[end - 1] != "-")
            end += 1
        head = head[end:]
    return head


def _flat(head):
    """A declaration without what stands in its parentheses."""
    flat = head
    while (smaller := re.sub(r"\([^()]*\)", "@", flat)) != flat:
        flat = smaller
    return flat


def _kind(head):
    """What a brace after this text opens: a "scope", a "function", or "values"."""
    text = head.strip()
    if _SCOPE.match(re.sub(r"^(typedef|static|constexpr|alignas\s*\([^)]*\))\s+", "", text)):
        return "values" if re.search(r"[^=!<>]=[^=]", _flat(text)) else "scope"
    if re.fullmatch(r"[A-Z][A-Z0-9_]+", text) or re.search(r"(?<!\w)=\s*\[", text):
        return "function"  # the body of a macro's function; a lambda with a name
    flat = _flat(text).replace("@", ")")
    if ")" not in flat or re.search(r"(?<!operator)(?<![=!<>+\-*/|&^%])=(?!=)", flat):
        return "values"
    initialisers = re.search(r"\)[^:()]*(?<!:):(?!:)", flat)
    if initialisers:  # a_(1), b_{2} {: the brace after a name is a member's
        return "function" if re.search(r"[)}]$", flat) else "values"
    return "function" if _END_OF_SIGNATURE.search(flat) else "values"


def _name(head):
    """The name before the parameters, with its class where that is written there."""
    named = re.search(r"(\w+)\s*=\s*\[", head)
    if named:
        return named[1]
    test = re.match(r"TEST(?:_[FP])?\s*\((\w+),\s*(\w+)\)", head.strip())
    if test:
        return f"{test[1]}.{test[2]}"
    flat = re.sub(r"\s*(?<!:):(?!:).*", "", _flat(head.strip()), flags=re.S)
    for found in re.finditer(
        r"((?:\w+(?:<[^@<>]*>)?::)*(?:operator\s*[^\s\w@]+|~?\w+)(?:<[^@<>]*>)?)\s*@", flat
    ):
        if found[1] not in _NO_NAMES:
            return found[1]
    return flat.strip()[:40]
