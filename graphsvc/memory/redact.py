"""Secrets leave a text before it is written anywhere: a table of rules, one row a kind of secret.

A rule looks for its hints with `str.find` and tries its pattern only where one stands, so a text without hints costs a
few passes of a substring search. Every repetition in a pattern is bounded and, where it matters, possessive; a run of
token characters is entered at its beginning only. Both together keep hostile text linear.

The replacement is `[redacted:<rule>]` for the secret's own characters. Patterns take no unescaped quote and end before
the backslash of an escaped one, so that JSON stays JSON at any depth of quoting.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Match: TypeAlias = re.Match[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A kind of secret. The secret is the last group of the pattern that took part, else the whole match."""

    name: str
    hints: tuple[str, ...]  # one of them stands where the pattern begins
    pattern: re.Pattern[str]
    folded: bool = False  # hints are lower case and stand for any case
    accept: Callable[[Match], bool] | None = None  # the judgement that a pattern cannot make


def redact(text: str) -> str:
    """Replace every secret by a marker that names its kind; everything else stays byte for byte."""
    # A replaced secret can uncover a neighbour that was glued to it: repeat until nothing is found, so that redacting
    # twice is redacting once. Each round takes away characters that belong to no marker, hence it ends.
    while spans := _merged(sorted(_found(text))):
        parts: list[str] = []
        done = 0
        for start, end, order in spans:
            parts += text[done:start], f"[redacted:{RULES[order].name}]"
            done = end
        text = "".join((*parts, text[done:]))
    return text


def redact_value(value: object) -> object:
    """Return a JSON value with all its texts redacted: values, keys, and whatever stands at a telling key."""
    # A stack instead of recursion: hosts hand over values nested deeper than Python's limit.
    root = _cleaned(value, None)
    boxes = [root]
    while boxes:
        box = boxes.pop()
        if isinstance(box, dict):
            named = box.get("name") or box.get("key")  # {"name": "DB_PASSWORD", "value": …}
            for key, part in box.items():
                box[key] = _cleaned(part, named if key == "value" else key)
            boxes += box.values()
        elif isinstance(box, list):
            box[:] = [_cleaned(part, None) for part in box]
            boxes += box
    return root


def strip_private(text: str) -> str:
    """Replace `<private>…</private>` and `<私密>…</私密>` by `[private]`, with the spans inside.

    One that is never closed runs to the end: of the text, or of the value where the text is JSON, as a tool's input is.
    """
    clean, inside = _stripped(text)
    if not inside or not text.lstrip().startswith("{"):
        return clean
    try:
        return json.dumps(_by_value(json.loads(text)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return clean


def open_spans(text: str) -> int:
    """Return how many private spans a text begins and does not end."""
    return _stripped(text)[1]


def _stripped(text: str) -> tuple[str, int]:
    parts: list[str] = []
    done = inside = 0
    for tag in _PRIVATE.finditer(text):
        if inside == 0 and tag["slash"]:
            continue
        if inside == 0:
            parts += text[done : tag.start()], "[private]"
        inside += -1 if tag["slash"] else 1
        done = tag.end()
    return "".join(parts if inside else (*parts, text[done:])), inside


def _by_value(value: object) -> object:
    """Return a JSON value without the private spans of its texts."""
    if isinstance(value, str):
        return strip_private(value)
    if isinstance(value, dict):
        return {strip_private(name): _by_value(part) for name, part in value.items()}
    return [_by_value(part) for part in value] if isinstance(value, list) else value


def _found(text: str) -> Iterator[tuple[int, int, int]]:
    # İ is the one character whose lower case is longer: left alone, positions agree in both texts.
    lower = text.replace("\u0130", "I").lower()
    for order, rule in enumerate(RULES):
        hay = lower if rule.folded else text
        for hint in rule.hints:
            at = hay.find(hint)
            while at >= 0:
                match = rule.pattern.match(text, at)
                if match and (rule.accept is None or rule.accept(match)):
                    start, end = match.span(match.lastindex or 0)
                    yield _escape(text, start), end, order
                    at = end - 1
                at = hay.find(hint, at + 1)


def _escape(text: str, start: int) -> int:
    """Return where the escape begins that a secret seems to begin in: half of one would be no JSON any more."""
    if text[start : start + 1] in _ESCAPED:
        while start and text[start - 1] == "\\":
            start -= 1
    return start


def _merged(spans: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Join spans that overlap; the rule that stands first in the table gives the name."""
    merged: list[tuple[int, int, int]] = []
    for start, end, order in spans:
        if merged and start < merged[-1][1]:
            first, last, other = merged[-1]
            merged[-1] = first, max(last, end), min(other, order)
        else:
            merged.append((start, end, order))
    return merged


def _cleaned(part: object, key: object) -> object:
    """Copy one level: a text is redacted, a box is handed back open for the next round."""
    if isinstance(part, str):
        # A header's name and `aws_secret_access_key` are the context that other rules ask for.
        lead = f"{key}: " if isinstance(key, str) and _CONTEXT_KEY.search(key[-_LONGEST_KEY:]) else ""
        part = strip_private(part)
        clean = redact(lead + part).removeprefix(lead)
        rule = _telling(key) if isinstance(key, str) and not (lead and clean != part) else None
        return f"[redacted:{rule}]" if rule and _secret(part, rule, quoted=True) else clean
    if isinstance(part, Mapping):
        copy: dict[object, object] = {}
        for name, inner in part.items():
            clean = plain = redact(strip_private(name)) if isinstance(name, str) else name
            count = 1
            while clean in copy:  # two secrets as keys became the same marker: both values stay
                count += 1
                clean = f"{plain}#{count}"
            copy[clean] = inner
        return copy
    return list(part) if isinstance(part, list | tuple) else part


def _telling(key: str) -> str | None:
    """Name the assignment rule that a key of a JSON object belongs to."""
    if len(key) > _LONGEST_KEY:
        return None
    for name, pattern in _TELLING.items():
        match = pattern.search(key)
        if match and not _harmless(key, match.start(), name):
            return name
    return None


def _harmless(text: str, at: int, name: str) -> bool:
    """Tell that what stands before a key makes it the key of something else; Chinese keys take no such prefix."""
    return text[at].isascii() and _HARMLESS_PREFIX[name].search(text, max(0, at - _LONGEST_PREFIX), at) is not None


# Where a run of token characters may begin. A letter before it is no part of it when it ends an escape of JSON (`\n`,
# `\u000a`), of a URL (`%3D`) or a terminal's colour code.
_ESCAPED: Final = frozenset("nrtbfu")  # behind a backslash, in JSON
_AFTER_ESCAPE: Final = r"(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2})|(?<=[0-9\[]m)"
_START: Final = rf"(?:(?<![A-Za-z0-9])|{_AFTER_ESCAPE})"
_DASHED_START: Final = rf"(?:(?<![A-Za-z0-9_-])|{_AFTER_ESCAPE})"
_END: Final = r"(?![A-Za-z0-9])"
_DASHED_END: Final = r"(?![A-Za-z0-9_-])"
_SLASH: Final = r"\\{0,7}/"
_DIGIT: Final = re.compile(r"[0-9]")

# The escapes that JSON printers use inside base64: `\/`, `\u002b`, `\u003d`.
_BASE64: Final = r"(?:[A-Za-z0-9+/=]|\\{1,7}(?:/|u00(?:2[bBfF]|3[dD])))"


def _plain(name: str, hints: str, body: str, accept: Callable[[Match], bool] | None = None) -> Rule:
    """Make the row of a token that consists of letters and digits behind its prefix."""
    return Rule(name=name, hints=tuple(hints.split()), pattern=re.compile(_START + body + _END), accept=accept)


def _dashed(name: str, hints: str, body: str, accept: Callable[[Match], bool] | None = None) -> Rule:
    """Make the row of a token that may hold `-` and `_` too."""
    pattern = re.compile(_DASHED_START + body + _DASHED_END)
    return Rule(name=name, hints=tuple(hints.split()), pattern=pattern, accept=accept)


def _context(name: str, hints: tuple[str, ...], body: str, accept: Callable[[Match], bool] | None = None) -> Rule:
    """Make the row of a secret that only its surroundings give away, in any case."""
    return Rule(name=name, hints=hints, pattern=re.compile(body, re.IGNORECASE), folded=True, accept=accept)


def _has_digit(match: Match) -> bool:
    # `sk-learn-contrib-…` and other names have the shape of a token; random keys of 20 characters have a digit.
    return _DIGIT.search(match[match.lastindex or 0]) is not None


def _near(word: str, before: int, after: int = 0) -> Callable[[Match], bool]:
    """Accept a match with the word close to it."""

    def accept(match: Match) -> bool:
        around = match.string[max(0, match.start() - before) : match.end() + after]
        return word in around.lower() and _credible(match)

    return accept


def _credible(match: Match) -> bool:
    """Accept a value that is neither a placeholder nor a reference to one."""
    value = match[match.lastindex or 0]
    return not _seam(match) and not _placeholder(value) and not _REFERENCE.search(value) and value.strip("*.xX-_") != ""


def _placeholder(value: str) -> bool:
    """Tell a mask, or words that stand for a value to come, from a secret that happens to hold such a word."""
    if _MASK.search(value):
        return True
    rest = _ALGORITHM.sub("", value)
    return _PLACEHOLDER.search(value) is not None and all(map(_FILLER.fullmatch, _SEPARATORS.split(rest)))


def _seam(match: Match) -> bool:
    """Tell that the quote before the value ended a JSON text; what seems to be the value is what follows that text."""
    start = match.start(match.lastindex or 0)
    return start > 0 and match.string[start - 1] == '"' and match.string[start] in ":,]}"


def _mixed(match: Match) -> bool:
    """Accept base64 of random bytes: a commit id is lower case, a constant upper case."""
    value = match[match.lastindex or 0]
    return _has_digit(match) and value != value.lower() and value != value.upper()


def _header_value(match: Match) -> bool:
    """Accept what follows a scheme, or what no words are: `Authorization: see-section-2` is prose."""
    value = match[match.lastindex or 0]
    basic = "basic" in match[0].lower() and value != value.lower()
    return (basic or (_has_digit(match) and not _WORDY.fullmatch(_ALGORITHM.sub("", value)))) and _credible(match)


def _cookie(match: Match) -> bool:
    return _has_digit(match) and _near("cookie", 400)(match)


def _url_password(match: Match) -> bool:
    return _credible(match) and match[1].lower() not in _URL_PLACEHOLDERS


def _mysql_password(match: Match) -> bool:
    # `-p3306:3306` publishes a port.
    return _near("mysql", 120)(match) and match[match.lastindex or 0].strip("0123456789.:") != ""


def _netrc_password(match: Match) -> bool:
    """Accept what words are not: `a machine may login with password authentication` is prose."""
    value = match[match.lastindex or 0]
    return any(map(str.isalpha, value)) and not value.isalpha() and not _WORDS.fullmatch(value) and _credible(match)


def _client_password(match: Match) -> bool:
    """Accept `docker login -p …` and `redis-cli -a …`; `-p` of other programs is a port or a path."""
    before = match.string[max(0, match.start() - 120) : match.start()].lower()
    value = match[match.lastindex or 0]
    tool = "redis-cli" if match[0][2] == "a" else " login "
    return tool in f"{before} " and not _seam(match) and _secret(value, "password", quoted=False, tight=True)


def _identified(match: Match) -> bool:
    # A sentence says `identified by "name"`.
    value = match[match.lastindex or 0]
    told = _DIGIT.search(value) or _STRONG.search(value)
    return told is not None and not _seam(match) and _secret(value, "password", quoted=True)


def _scattered_match(match: Match) -> bool:
    return _scattered(match[1])


def _option(match: Match) -> bool:
    """Accept the value behind `--password` and its like."""
    start = match.start(match.lastindex or 0)
    name = "password" if "-pass" in match[0].lower() else "token"
    quoted = match.string[start - 1] in "\"'`"
    return not _seam(match) and _secret(match[match.lastindex or 0], name, quoted=quoted, tight=True)


# A value in quotes, for each depth of JSON inside JSON. At depth d a quote carries 2^d - 1 backslashes, and a backslash
# of the value is written as 2^d of them; anything else ends the text around it.
def _in_quotes(slashes: int) -> str:
    slash = rf"\\{{{slashes + 1}}}"
    quote = rf'\\{{{slashes}}}"'
    short = rf"|\\{{1,{slashes}}}(?![\\\"])" if slashes else ""
    return rf'{quote}((?>(?:[^"\\\r\n]|{slash}(?:{slash}|{quote}|[^"\\\r\n]){short}){{1,512}})){quote}'


# Inside ' and ` a bare double quote ends the JSON text around, hence the value; an escaped one belongs to it.
def _in_marks(mark: str) -> str:
    inner = rf"[^{mark}\"\\\r\n]|(?:\\\\){{1,4}}(?![\\\"{mark}])|(?:\\\\){{0,4}}\\[^\\\r\nnr]"
    return rf"{mark}((?>(?:{inner}){{1,512}})){mark}"


_QUOTED: Final = "|".join((*(_in_quotes(slashes) for slashes in (0, 1, 3, 7)), _in_marks("'"), _in_marks("`")))
# A bare value ends at white space, quotes, brackets, backslashes (but not the escape of a slash) and at what is not
# ASCII, which is how a value ends in a Chinese sentence; `&name=` begins the next field of a URL. What ties keys to
# values is counted, so that `token:token:token:…` costs each of its keys a few steps only.
_BARE_CHARS: Final = r"[!#$%*+\-./0-9?@A-Z^_a-z~]"
_BARE_JOINT: Final = r"(?:[:=]{1,3}|&(?![\w.-]{1,40}=)|\\{1,7}/)"
_BARE: Final = rf"({_BARE_CHARS}{{1,256}}(?:{_BARE_JOINT}{_BARE_CHARS}{{0,256}}){{0,3}}(?<![.:?\\]))"
_VALUE: Final = rf"(?:{_QUOTED}|(?:[“‘「『《]|\\{{1,7}}u(?:201[8c]|300[ace]))?{_BARE})"


# `key` is a common word: its pattern takes nothing but what can be accepted.
_KEY_VALUE: Final = r"(?:\\{0,7}[\"'`“‘「『《])?([A-Za-z0-9]{20,200})(?![A-Za-z0-9_/+-])"


def _words(*words: str) -> str:
    """Match any of the words as it is, and as JSON printers escape it (`\\u5bc6\\u7801`) behind the first backslash."""
    return "|".join((*words, *(r"\\{1,7}".join(_escapes(word)) for word in words)))


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _escapes(word: str) -> list[str]:
    return [f"u{ord(char):04x}" for char in word]


# What may follow a key before its separator, and what ties it to its value.
_SUFFIX: Final = (
    r"(?:[_-]?key(?:[_-]?base)?|[_-]?(?:value|plain|text)|[0-9]{1,2}"
    r"|[_-](?:prod|production|dev|test|staging|live|root|admin|user|db|old|new|secret))?"
)
_TIE_FORMS: Final = (
    r"[ \t]{0,3}\??:[ \t]{0,2}(?:str|string|bytes|text|&str)[ \t]{0,2}=[ \t]{0,2}",  # password: str = "…"
    r"[:：]\*\*[ \t]{1,3}",  # **Password:** …
    r"[ \t]{0,20}(?:=>|:=|={1,3}|[:：＝]|\\{1,7}uff(?:1a|1d))[ \t]{0,8}",
    rf"[ \t]{{0,3}}(?:\\{{0,7}}(?:{_words('已', '已经', '现在', '就', '应该', '还', '仍', '也')})){{0,2}}"
    rf"\\{{0,7}}(?:{_words('是', '为', '為', '改为', '改成', '换成', '设为', '设成', '设置为', '设置成')})"
    rf"(?:\\{{0,7}}(?:{_words('了')}))?(?:[:：]|\\{{1,7}}uff1a)?[ \t]{{0,3}}",
    r"[ \t]{1,3}(?:is|was|will[ ]be|should[ ]be)(?:[ ](?:now|still))?(?:[ ](?:set|changed|reset)[ ]to)?[ ]?:?"
    r"[ \t]{1,3}",
    r"[ \t]{1,3}(?:set|changed|reset)[ ]to[ ]?:?[ \t]{1,3}",
    r"[ \t]{1,20}(?:\||→|->?|\\{1,7}u2192)[ \t]{1,20}",  # a cell of a table
    r"[（]|\\{1,7}uff08",
    r"[ ]value[ ]?=[ ]?",  # key="Password" value="…"
    r">",  # <password>…</password>
    # name: DB_PASSWORD, value: …
    r"(?:[ \t\r\n,]|\\{1,7}[nrt]){1,40}\\{0,7}[\"']?value\\{0,7}[\"']?[ \t]{0,3}:[ \t]{0,3}",
)
_LOOSE_TIE: Final = r"(?:[ \t]{1,3}|,[ \t]{0,3}|(?:[:：]|\\{1,7}uff1a)?[ \t]{0,3}(?:\r?\n|\\{1,7}n)[ \t]{0,12})"
# Behind a mere space, comma or line break only random characters are taken: `use token …`, `ENV API_KEY …`.
_TIE: Final = (
    r"(?:\\{0,7}[\"'`]\]?|\*\*|[ ](?:for|of|on)[ ](?:the[ ])?[\w.@-]{1,40})?"
    rf"(?P<tie>{'|'.join(_TIE_FORMS)}|{_LOOSE_TIE})"
)

_KEY_OF: Final = (
    *("api", "access", "private", "signing", "encryption", "auth"),
    *("master", "account", "service", "app", "subscription"),
)
_SPOKEN: Final = {
    "password": ("密码", "密碼", "口令"),
    "secret": ("密钥", "密鑰", "私钥", "秘钥", "凭证", "凭据"),
    "token": ("令牌", "授权码"),
}
_KEY_START: Final = rf"(?:(?<![a-z])|{_AFTER_ESCAPE})"
_KEYS: Final = {
    "password": r"pass(?:word|wd|phrase|code)|pwd"
    rf"|{_KEY_START}pass|(?-i:(?<=[a-z])Pass)"  # but not `bypass`
    rf"|{_KEY_START}pw"
    rf"|{_words(*_SPOKEN['password'])}",
    "api-key": rf"(?:{'|'.join(_KEY_OF)})[ _-]?key",
    "secret": rf"secret(?:[_-]?access)?|credentials?|{_words(*_SPOKEN['secret'])}",
    "token": rf"token|{_words(*_SPOKEN['token'])}",
    "key": rf"(?:{_KEY_START}|(?-i:(?<=[a-z])(?=K)))key",  # OPENAI_KEY, `the key is …`: random values only
}
_KEY_HINTS: Final = {
    "password": ("pass", "pw"),
    "api-key": tuple(f"{word}{gap}key" for word in _KEY_OF for gap in ("", "_", "-", " ")),
    "secret": ("secret", "credential"),
    "token": ("token",),
    "key": ("key",),
}
# `<private>` and `<私密>`, also in full width; in JSON also `<\/private>` and `\u003cprivate\u003e`.
_WIDE: Final = ord("ａ") - ord("a")
_WORD: Final = "".join(
    rf"(?:[{char}{chr(ord(char) + _WIDE)}]|\\{{1,7}}u(?:{ord(char) + _WIDE:x}|{ord(char.upper()) + _WIDE:x}))"
    for char in "private"
)
_PRIVATE: Final = re.compile(
    r"(?:[<＜]|\\{1,7}u(?:003c|ff1c))[ \t\u3000]{0,3}(?P<slash>\\{0,7}[/／]|\\{1,7}uff0f)?[ \t\u3000]{0,3}"
    rf"(?:{_WORD}|私密|\\{{1,7}}u79c1\\{{1,7}}u5bc6)[ \t\u3000]{{0,3}}(?:[>＞]|\\{{1,7}}u(?:003e|ff1e))",
    re.IGNORECASE,
)
_LONGEST_KEY: Final = 80
_CONTEXT_KEY: Final = re.compile(r"authorization$|cookie$|secret[_-]?access[_-]?key$", re.IGNORECASE)
_TELLING: Final = {name: re.compile(f"(?:{key}){_SUFFIX}$", re.IGNORECASE) for name, key in _KEYS.items()}
# `nextPageToken`, `pad_token`, `has_password`: a word in the same name takes the secrecy away. A word before a space
# is a sentence's (`it is password: …`, `in the end token=…`), unless it names a kind of token.
_HARMLESS_NAME: Final = (
    r"(?:keyword|public|design|under|over|(?<![a-z])(?:by|com|tres|sur|is|has|no|max|min|per|num|count|type))[_-]?"
)
_HARMLESS_PAGE: Final = (
    r"(?:next|prev|page|special|cursor|continuation|cancell?ation|current"
    r"|(?<![a-z])(?:pad|eos|bos|sep|cls|mask|unk|stop|sync|start|end))[_-]?"
    r"|(?<![a-z])(?:(?:next|prev|previous|result)[ ]page|special|cursor|continuation|cancell?ation|design"
    r"|pad|eos|bos|sep|cls|mask|unk)[ ]"
)
_HARMLESS_KEY: Final = (
    r"(?:public|pub|primary|foreign|sort|partition|cache|object|host|index|map|dict|row|idempotency)[ _-]?"
    r"(?:[a-z]{1,12}[ _-])?"
)
_HARMLESS: Final = {"token": f"{_HARMLESS_NAME}|{_HARMLESS_PAGE}", "key": f"{_HARMLESS_NAME}|{_HARMLESS_KEY}"}
_HARMLESS_PREFIX: Final = {
    name: re.compile(f"(?:{_HARMLESS.get(name, _HARMLESS_NAME)})$", re.IGNORECASE) for name in _KEYS
}
_LONGEST_PREFIX: Final = 30

# Masks and brackets for "a value goes here", anywhere; words for it where the rest is words and a small number, too:
# `your_api_key_2` is no secret, `Todo7Kx92mPq` and `example-9fK2mQ7x` are.
_MASK: Final = re.compile(r"^\[(?:redacted|private)[^\]]{0,60}\]$|\*{3}|x{4}|X{4}|\.{3}|…|•{2}|^[<\[{(]|<[\w -]{1,40}>")
_PLACEHOLDER: Final = re.compile(
    r"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?:"
    r"(?i:examples?|placeholder|change[-_ ]?(?:me|this|it)|replace[-_ ]?(?:me|this|with)|redacted|dummy|todo|fixme"
    r"|insert(?=[-_ ])|not[-_ ]set)(?:(?![a-z])|(?i:(?=(?:password|passwd|pass|secret|token|key)s?(?![a-z]))))"
    r"|(?:your|Your|YOUR))"
    r"|[-_ ](?i:here)$"
)
_FILLER: Final = re.compile(
    r"(?:[A-Za-z]|(?:[A-Z]{0,80}+[a-z]{2,80}+|[A-Z]{1,80}+){0,20}+)(?:\d{0,4}|0?12345\d{0,5})|\d{1,4}(?:char|byte|bit|digit)s?",
)
_REFERENCE: Final = re.compile(
    r"\$\{|\{\{|\$\(|#\{|%\(|\{[A-Za-z_][\w.]{0,40}\}|^\$[A-Za-z_]\w{0,60}$|^%\w{1,40}%$|^%[sdv]|://"
    r"|process\.env|os\.environ|getenv|import\.meta|secrets?\.[A-Za-z_]|^(?:vars?|env|self|this|config|settings|args|data)\.|^env:"
)
_URL_PLACEHOLDERS: Final = frozenset({"password", "passwd", "passwort", "pass", "pwd", "secret"})
_STOPWORD: Final = re.compile(
    r"string|number|object|boolean|integer|hidden|required|optional|text|invalid|missing|bcrypt|argon|scrypt|plaintext"
    r"|encrypted|hashed|default|disabled|enabled|always|prompt|unknown|username|password|passwd|passphrase|secret|token"
    r"|undefined|null|none|nil|true|false|never|empty|value|testing|current|confirm|verify|forgot|reset|update|login"
    r"|signin|submit|expired|revoked|denied|failed|changed|wrong|correct|incorrect|weak|strong|medium|masked|generated"
    r"|random|redacted|private|public|system|keyboard|publickey|interactive|nullable|varchar",
    re.IGNORECASE,
)
_ALGORITHM: Final = re.compile(
    r"sha-?[1-9]\d{0,2}|md5|base(?:32|58|64)|utf-?(?:8|16)|pbkdf2|argon2(?:id?|d)?|[hrep]s(?:256|384|512)|ed25519|x509|oauth2"
    r"|aes-?(?:128|192|256)|p256|u?int(?:8|16|32|64)|float(?:32|64)|k8s|s3|[ie]18n|2fa|http2|h264|ipv[46]|latin1",
    re.IGNORECASE,
)
# Words joined as identifiers, labels and file names are: a number may end each of them.
_WORDY: Final = re.compile(r"[A-Za-z]{0,80}+\d{0,2}+(?:[-_./:=][A-Za-z]{0,80}+\d{0,4}+){0,20}+")
_WORDS: Final = re.compile(r"[A-Za-z]{0,80}+(?:[-_./:=,?!][A-Za-z]{0,80}+){0,20}+")
_DOTTED: Final = re.compile(r"[A-Za-z_$]\w{0,80}+(?:\??\.[A-Za-z_$]\w{0,80}+){1,20}+")
_PATH: Final = re.compile(
    r"(?:[A-Za-z]:|~|\.{0,2})[\\/]{1,2}[\w.@-]{1,80}[\\/][^+=]{0,400}"
    r"|[\w@.-]{1,80}(?:/[\w@.-]{1,80}){0,20}\.[a-z]{1,5}"
)
_MAIL: Final = re.compile(r"[\w.+-]{1,80}@[\w-]{1,80}(?:\.[\w-]{1,80}){1,8}")
_SEPARATORS: Final = re.compile(r"[^A-Za-z0-9]")
_LONGEST_VALUE: Final = 512
_PROSE: Final = re.compile(r"[\s\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # more than one word, or Chinese
_RANDOM_CHARS: Final = re.compile(r"[A-Za-z0-9!@#$%^&*?~+_-]{10,200}={0,2}")
_DIGITS: Final = re.compile(r"[0-9]{1,512}")
_HEX: Final = re.compile(r"[0-9a-f]{32,128}")
_STRONG: Final = re.compile(r"[!@#$%^&*?~+]")
_KINDS: Final = tuple(map(re.compile, (r"[a-z]", r"[A-Z]", r"[0-9]{2}|[0-9][^0-9]{1,40}[0-9]", r"[!@#$%^&*]")))
_LOOSE: Final = re.compile(_LOOSE_TIE)
_COUNT: Final = re.compile(r"(?<![A-Za-z_-])pass(?![a-z])", re.IGNORECASE)
_ENV_LINE: Final = re.compile(r"^[A-Z_]{3,40}$")
_SHORT: Final = re.compile(r"(?=[^0-9]{0,7}[0-9])(?=[^A-Za-z]{0,7}[A-Za-z])[A-Za-z0-9][A-Za-z0-9!@#]{5,6}")
_MEASURE: Final = re.compile(r"\d{1,4}(?:char|character|byte|bit|digit|letter|day|hour|minute|second|time|word)s?")
_NUMBERED: Final = re.compile(r"(?:[A-Za-z]{1,60}(?=[A-Z]))?([A-Za-z][a-z]{1,20}?)s?\d{1,2}")
# Names that programs and papers number.
_NUMBERED_NAMES: Final = _word_set(
    "alg algorithm answer arg argument attempt buffer build case chapter char client code col column conf config"
    " cred data default draft elem element entry env error event example fig figure file first fixture flag form"
    " group hash host index input issue item kernel key label left level line list login match method mock model"
    " mode name new next node note number object old option opt other out output page param parameter part phase"
    " phrase placeholder policy port prev prompt query record ref release req request res resp response result ret"
    " return rev right role row rule salt sample schema second section server setting source stage state step str"
    " string stub table target task test text type user username val value var variable version view word ubuntu"
    " debian windows centos java php python mysql postgres"
)
_PHRASE_WORD: Final = re.compile(r"[A-Za-z0-9!@#$%^&*?~+_-]{1,40}")
# What sentences, labels and messages about passwords are made of, and lists for passphrases mostly are not.
_TALK: Final = _word_set(
    "a an the this that these those it its is are was were be been being am do does did done has have had can"
    " could will would shall should may might must not no none never always only also already and or but if then"
    " else when while where which who what why how of to in on at by for from with without into onto over under"
    " about after before between than too so as per via you your yours we our us they their them he his she her i"
    " my me one two three any all each every some same other again here there now please enter type choose pick"
    " use used using see set sets get gets read reads kept keep stored store sent send given least most min max"
    " minimum maximum length long short longer shorter char chars character characters letter letters digit digits"
    " number numbers symbol symbols upper lower case uppercase lowercase pass password passwords passwd passphrase"
    " passcode pwd secret secrets token tokens key keys hash hashed hashes hashing salt salted user users username"
    " account login logged field fields value values string strings text input required optional invalid valid"
    " missing wrong incorrect empty blank match matches mismatch expired expires change changed reset forgot"
    " forgotten confirm confirmed new old current default weak strong null true false error failed try check"
    " checks encrypted encryption example placeholder need needs needed want make made file env environment"
    " variable config configured disabled enabled allowed denied varchar"
)
_LABEL: Final = re.compile(r"pass|pwd|secret|token|input|field|label", re.IGNORECASE)


def _assigned(name: str) -> Callable[[Match], bool]:
    """Accept `key = value` when the key is about this text's secret and the value reads like one."""

    def accept(match: Match) -> bool:
        text, start, end = match.string, match.start(match.lastindex or 0), match.end(match.lastindex or 0)
        quoted = text[start - 1] in "\"'`“‘「『《"
        value, tie = text[start:end], match["tie"]
        if _harmless(text, match.start(), name):
            return False
        if not quoted and (text[end : end + 1] in {"(", "[", "{"} or "==" in tie):
            return False
        if _LOOSE.fullmatch(tie):
            return (
                (_scattered(value) or (name == "password" and _complex(value)))
                and not _seam(match)
                and not _placeholder(value)
            )
        if quoted:
            return not _seam(match) and _secret(value, name, quoted=True)
        # A test runner's "PASS: name", "first pass = kernel32".
        count = _COUNT.match(text, match.start()) is not None
        if count and (tie[0] == ":" or len(value) < 8 or value.isdecimal()):
            return False
        if (
            tie == "="
            and name == "password"
            and not count
            and _ENV_LINE.search(match[0][: match.start("tie") - match.start()])
        ):
            # Letters only are a password in a file of settings; in a program they are a variable.
            return _secret(value, name, quoted=value.isalpha() and value.islower(), tight=True)
        if tie.replace(" ", "").isalpha() and not _DIGIT.search(value):  # "the password is correct!"
            return False
        return _secret(value, name, quoted=False, tight=tie == "=")

    return accept


def _secret(value: str, name: str, *, quoted: bool, tight: bool = False) -> bool:
    """Tell whether a value at a telling key reads like a secret, not like a word, a name, a path or code."""
    if name == "key":
        return len(value) >= 20 and value.isalnum() and not value.startswith("AAAA") and _scattered(value)
    human = name == "password"
    if not (6 if human else 8) <= len(value) <= _LONGEST_VALUE:
        return False
    if _PROSE.search(value):
        return quoted and human and _passphrase(value)
    likely = _quoted_secret(value, human=human) if quoted else _bare_secret(value, human=human, tight=tight)
    if not likely or _STOPWORD.fullmatch(value.strip("*.xX-_!?:=#'\"0123456789")):
        return False
    return not (_placeholder(value) or _REFERENCE.search(value) or _PATH.fullmatch(value))


def _passphrase(value: str) -> bool:
    """Tell words that were drawn from a list, or random groups, from a sentence about a password."""
    # Missed on purpose: phrases with capitals, punctuation, or a word that labels and messages are made of, and phrases
    # of fewer than four words: `password: "sent by mail"`.
    words = value.split(" ")
    if not all(map(_PHRASE_WORD.fullmatch, words)) or not _TALK.isdisjoint(value.lower().split(" ")):
        return False
    drawn = len(words) >= 4 and all(word.isalpha() and word.islower() and len(word) > 2 for word in words)
    groups = [word for word in words if not _FILLER.fullmatch(_ALGORITHM.sub("", word))]
    return drawn or (len(groups) > 1 and any(map(_DIGIT.search, groups)))


def _quoted_secret(value: str, *, human: bool) -> bool:
    if _random(value):
        return True
    if not (_DIGIT.search(value) or _STRONG.search(value) or (human and value.isalpha())):
        return False
    rest = _ALGORITHM.sub("", value)
    letters = any(char.isalpha() for char in rest)
    digits = len(_DIGIT.findall(rest))
    if not human:
        if _WORDY.fullmatch(rest) or _MAIL.fullmatch(value):
            return False
        return letters and (digits > 1 or len(_STRONG.findall(rest)) > 1)
    if _WORDY.fullmatch(value) and not value.isalnum() and (_LABEL.search(value) or not digits):
        return False
    if digits or _STRONG.search(rest.rstrip("!?")):
        return True
    # Letters only: a password as people choose them, unless it reads like a label (`Password`, `passwordInput`).
    return letters and not value.istitle() and _LABEL.search(value) is None and rest == value


def _bare_secret(value: str, *, human: bool, tight: bool) -> bool:
    if _random(value):
        return True
    if value.isdecimal() or _MEASURE.fullmatch(value):
        return human and value.isdecimal()
    if len(value) < 8:
        # Missed on purpose: short values without a digit (`password: letme!`) and with the signs of code (`salt+1`).
        return human and _SHORT.fullmatch(value) is not None and _chosen(value, tight=tight)
    strong = human and value[0] not in "&*@!" and _STRONG.search(value.rstrip("!?=")) is not None
    if not strong and not _DIGIT.search(value):
        return False
    rest = _ALGORITHM.sub("", value)
    digits = len(_DIGIT.findall(rest))
    if not any(char.isalpha() for char in rest) or _MAIL.fullmatch(value):
        return False
    if _WORDY.fullmatch(rest) and not (human and digits and value.isalnum() and _chosen(value, tight=tight)):
        return False
    if _DOTTED.fullmatch(value) and digits < 4:
        return False
    return digits > 1 or (human and digits > 0) or strong


def _chosen(value: str, *, tight: bool) -> bool:
    """Tell a word with a number that a person chose as password from a name in a program (`newPassword2`, `arg1`)."""
    # Missed on purpose: what a programmer calls a variable (`value2`, `userPass1`) and a writer a place (`step3`).
    numbered = _NUMBERED.fullmatch(value.lower() if value.isupper() else value)
    if _ALGORITHM.fullmatch(value) or (numbered and numbered[1].lower() in _NUMBERED_NAMES):
        return False
    return (tight and len(_DIGIT.findall(value)) > 1) or _LABEL.search(value) is None


def _random(value: str) -> bool:
    """Tell random letters and digits of both cases from words written together: they have few vowels."""
    if len(value) < 20 or not value.isalnum() or value in (value.lower(), value.upper()):
        return False
    letters = [char for char in value.lower() if char.isalpha()]
    return sum(char in "aeiou" for char in letters) * 10 < len(letters) * 3


def _scattered(value: str) -> bool:
    """Tell random characters that need no tie to a key: digits in three places, letters of both cases or all hex."""
    if not _RANDOM_CHARS.fullmatch(value) or len(_DIGITS.findall(_ALGORITHM.sub("", value))) < 3:
        return False
    cased = value not in (value.lower(), value.upper())
    return cased or (len(value) >= 32 and _HEX.fullmatch(value) is not None)


def _complex(value: str) -> bool:
    """Tell a password that some policy asked for: `Winter2024!`."""
    return (
        len(value) <= 40 and _RANDOM_CHARS.fullmatch(value) is not None and all(kind.search(value) for kind in _KINDS)
    )


def _assignment(name: str) -> Rule:
    value = _KEY_VALUE if name == "key" else _VALUE
    pattern = re.compile(f"(?:{_KEYS[name]}){_SUFFIX}{_TIE}{value}", re.IGNORECASE)
    spoken = _SPOKEN.get(name, ())
    hints = (*_KEY_HINTS[name], *spoken, *(_escapes(word)[0] + "\\" for word in spoken))
    return Rule(name=name, hints=hints, pattern=pattern, folded=True, accept=_assigned(name))


def _block() -> Rule:
    """Make the row of private key blocks: whole, cut off before their end, escaped, quoted line by line, numbered."""
    newline = r"(?:[ \t\r\n]|\\{1,7}[nrt])"
    # A line may carry a line number, a diff's sign, a comment's or a quote's.
    margin = rf"{newline}{{1,40}}(?:[0-9]{{1,6}}(?:→|\t|:|[ ]?\|)[ \t]{{0,8}})?[>#+|*-]{{0,3}}[ \t]{{0,8}}"
    seam = rf"{newline}{{0,4}}\\{{0,7}}[\"'][ \t]{{0,4}}[,+]?{newline}{{0,40}}\\{{0,7}}[\"']"
    header = rf"{margin}[A-Z][A-Za-z-]{{2,20}}:[ ][^\r\n\\\"]{{0,200}}"
    run = rf"(?>{_BASE64}{{16,16384}})"
    key = r"\\{0,7}[\"'][ \t\r\n]{0,8}:"  # what stands behind the text of one
    # Behind a seam the text goes on to its end: a key of an object is no line, however it goes on.
    others = r"(?:[^\"'\\\r\n]|\\{1,7}[^\"'\\\r\n]){0,500}"
    line = rf"(?:{margin}{run}(?!{key})|{seam}{run}(?!{others}{key})|{newline}{{0,4}}{run}(?!{key}))"
    tail = rf"(?:{margin}|{seam}|{newline}{{0,4}})(?>{_BASE64}{{1,76}})"
    end = rf"(?:{margin}|{seam}|{newline}{{0,4}})?-----END [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----"
    stop = r"(?=[ \t\r\n]{0,8}(?:\Z|\\{0,7}[\"'`]))"
    body = rf"(?:{header}){{0,6}}(?>(?:{line}){{1,2000}})(?:(?:{tail}){{0,2}}{end}|{tail}{stop})?"
    begin = r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----"
    return Rule(name="private-key", hints=("-----BEGIN ",), pattern=re.compile(begin + body))


_DASHED: Final = r"[A-Za-z0-9_-]"
_SHELL_WORD: Final = rf"(?:{_QUOTED}|((?:(?![\"'`\\<>|;])[!-~]){{4,256}}))"
_GAP: Final = r"(?:[ \t\r\n]|\\{1,7}[nrt]){1,20}"
_NETRC_WORD: Final = r"(?:(?![\"'`\\<>|;])[!-~]){1,128}"
_HEADER_TIE: Final = r"\\{0,7}[\"']?[ \t]{0,3}[:=,][ \t]{0,3}\\{0,7}[\"']?"

# Order decides the name where two rules meet: the more telling kind stands first.
RULES: Final[tuple[Rule, ...]] = (
    _block(),
    _plain("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,60}"),
    _dashed("jwt", "eyJ", r"eyJ[\w-]{10,4096}+\.[\w-]{6,16384}+(?:\.[\w-]{0,8192}+){1,3}"),
    _plain("aws-access-key-id", "AKIA ASIA ABIA ACCA", r"A(?:KI|SI|BI|CC)A[A-Z0-9]{16}"),
    _context(
        "aws-secret-key",
        ("secret", "aws", "akia", "asia"),
        r"(?:(?:secret|aws)[\w -]{0,24}(?:\\{0,7}[\"'])?\]?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}"
        r"|a[ks]ia[a-z0-9]{16}[\s,:\"']{1,6})"
        r"\\{0,7}[\"']?((?:[a-z0-9+]|\\{0,7}/){40})(?!\\{0,7}/|[a-z0-9+=])",
        _mixed,
    ),
    _plain("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9_]{30,1024}"),
    _dashed("graphsvc-token", "gsvc_", r"gsvc_[\w-]{43}"),
    _plain("github-token", "github_pat_", r"github_pat_[A-Za-z0-9_]{22,255}"),
    _dashed(
        "gitlab-token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[\w.-]{20,255}",
    ),
    _dashed(
        "slack-token",
        "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxc- xoxd-",
        r"xox[a-eo-s]-[\w%.-]{10,255}",
        _has_digit,
    ),
    _dashed("slack-token", "xapp-", r"xapp-[0-9]-[\w-]{20,255}"),
    _context(
        "slack-webhook",
        ("hooks.slack.com",),
        rf"hooks\.slack\.com{_SLASH}(?:services|workflows|triggers){_SLASH}((?:[a-z0-9_-]|{_SLASH}){{20,200}})",
    ),
    _context(
        "discord-webhook",
        ("discord.com", "discordapp.com"),
        rf"discord(?:app)?\.com{_SLASH}api{_SLASH}(?:v[0-9]{{1,2}}{_SLASH})?webhooks{_SLASH}[0-9]{{15,22}}{_SLASH}([a-z0-9_-]{{40,120}})",
    ),
    _plain("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}"),
    _plain("stripe-key", "whsec_", r"whsec_[A-Za-z0-9+/]{24,64}={0,2}"),
    _dashed("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{20,255}", _has_digit),
    _dashed("deepseek-key", "sk-", r"sk-[0-9a-f]{32}"),
    _dashed(
        "openai-key",
        "sk-proj- sk-svcacct- sk-admin- sk-None-",
        r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,255}",
        _has_digit,
    ),
    _dashed("openai-key", "sk-", r"sk-(?:[a-z]{2,8}-(?:v[0-9]-)?)?[A-Za-z0-9]{20,128}", _has_digit),
    _dashed("google-api-key", "AIza", rf"AIza{_DASHED}{{35}}"),
    _dashed("google-oauth", "ya29.", r"ya29\.[\w-]{20,2048}"),
    _dashed("google-oauth", "GOCSPX-", r"GOCSPX-[\w-]{20,40}"),
    _dashed("google-oauth", "1//0", r"1//0[\w-]{40,200}"),
    _plain("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    _dashed("pypi-token", "pypi-AgE", r"pypi-AgE[\w-]{40,1024}"),
    _plain("huggingface-token", "hf_", r"hf_[A-Za-z0-9]{30,64}"),
    _plain("huggingface-token", "api_org_", r"api_org_[A-Za-z0-9]{30,64}"),
    _dashed("sendgrid-key", "SG.", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    _plain("twilio-key", "SK", r"SK(?=[a-f]{0,31}[0-9])(?=[0-9]{0,31}[a-f])[0-9a-f]{32}"),
    _dashed("tavily-key", "tvly-", r"tvly-[\w-]{20,80}", _has_digit),
    Rule(
        name="telegram-bot",
        hints=(":AA",),
        pattern=re.compile(rf"(?<=[0-9]{{8}}):(AA{_DASHED}{{32,35}}){_DASHED_END}"),
    ),
    _dashed("discord-bot", "MT Mj Mz ND NT Nj Nz OD OT", r"[MNO][\w-]{22,28}\.[\w-]{6}\.[\w-]{27,45}", _has_digit),
    _context(
        "azure-storage-key", ("accountkey", "sharedaccesskey"), rf"(?:account|sharedaccess)key=({_BASE64}{{40,400}})"
    ),
    _plain("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[a-f0-9]{64}"),
    _plain("linear-key", "lin_api_ lin_oauth_", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,64}"),
    _plain("notion-token", "ntn_", r"ntn_[A-Za-z0-9]{40,64}"),
    _plain("notion-token", "secret_", r"secret_[A-Za-z0-9]{43}", _has_digit),
    _plain("databricks-token", "dapi", r"dapi[0-9a-f]{32}(?:-[0-9])?"),
    _dashed("vault-token", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{20,400}"),
    _dashed("docker-token", "dckr_pat_ dckr_oat_", r"dckr_[po]at_[\w-]{20,64}"),
    _plain("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    _plain("grafana-token", "glsa_", r"glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}"),
    _plain("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{40,64}"),
    _plain("xai-key", "xai-", r"xai-[A-Za-z0-9]{60,100}"),
    _plain("perplexity-key", "pplx-", r"pplx-[A-Za-z0-9]{40,64}"),
    _plain("replicate-token", "r8_", r"r8_[A-Za-z0-9]{37}"),
    _plain("supabase-token", "sbp_", r"sbp_[0-9a-f]{40}"),
    _plain("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _dashed("tailscale-key", "tskey-", r"tskey-[a-z]{2,12}-[\w-]{16,80}", _has_digit),
    _dashed("figma-token", "figd_", r"figd_[\w-]{36,60}"),
    _dashed("postman-key", "PMAK-", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _dashed("atlassian-token", "ATATT3", r"ATATT3[\w=-]{60,400}"),
    _dashed("sentry-token", "sntrys_ sntryu_", r"sntry[su]_[\w=+/-]{40,400}"),
    _plain("aliyun-key", "LTAI", r"LTAI[A-Za-z0-9]{16,24}", _has_digit),
    _context(
        "authorization",
        ("authorization",),
        rf"authorization{_HEADER_TIE}(?:(?:bearer|basic|token|apikey|digest)[ \t]{{1,3}})?"
        r"([a-z0-9._~+/=-]{12,8192})(?![a-z0-9({\[])",
        _header_value,
    ),
    _context("bearer", ("bearer ",), r"bearer[ \t]{1,3}([a-z0-9._~+/=-]{16,8192})(?![a-z0-9({\[])", _header_value),
    _context(
        "url-password",
        ("://", ":\\/\\/", ":\\\\/\\\\/"),
        rf":{_SLASH}{_SLASH}[^\s:/?#@\"'`\\<>\[\]()]{{0,128}}:(?![0-9]{{1,5}}[?#])([^\s/\"'`\\<>,]{{3,256}})@[\w\[.%-]",
        _url_password,
    ),
    # https://<token>@host: the name alone is the secret.
    _context(
        "url-password",
        ("://", ":\\/\\/", ":\\\\/\\\\/"),
        rf":{_SLASH}{_SLASH}([a-z0-9_-]{{20,200}})@[\w\[.%-]",
        _scattered_match,
    ),
    _context(
        "ssh-password",
        ("sshpass",),
        rf"sshpass[ \t]{{1,4}}(?:-[vet][ \t]{{1,4}}){{0,2}}-p[ \t]{{0,4}}{_SHELL_WORD}",
        _credible,
    ),
    _context(
        "command-password",
        (" -u", " --user"),
        r"[ ]-(?:u|-user)[ =]{0,4}\\{0,7}[\"']?[\w.@+-]{1,64}:((?:(?![\"'`\\<>|;])[!-~]){4,256})",
        _near("curl", 300),
    ),
    _context("command-password", (" -p",), rf"[ ]-p{_SHELL_WORD}", _mysql_password),
    _context("command-password", (" -p ", " -a "), rf"[ ]-[pa][ ]{{1,4}}{_SHELL_WORD}", _client_password),
    _context(
        "command-password",
        ("identified by", "identified with"),
        r"identified (?:by|with [\w\\\"']{1,40} by)[ \t]{1,4}" + rf"(?:{_QUOTED})",
        _identified,
    ),
    _context(
        "command-password",
        ("--pass", "--token", "--secret", "--api-key"),
        rf"(?<![\w-])--(?:pass(?:word|wd|phrase)?|token|secret|api-key)[ ]{{1,4}}{_SHELL_WORD}",
        _option,
    ),
    _context(
        "netrc-password",
        ("machine", "default"),
        rf"(?:machine{_GAP}[\w.:-]{{1,253}}|default)(?:{_GAP}(?:login|account){_GAP}{_NETRC_WORD}){{0,2}}"
        rf"{_GAP}password{_GAP}{_SHELL_WORD}",
        _netrc_password,
    ),
    _context(
        "session-cookie",
        ("sess", "sid=", "auth=", "jwt="),
        r"(?:sess(?:ion)?(?:[_.-]?(?:id|key))?|sid|auth|jwt)=([a-z0-9%._~+/:-]{16,4096}=?=?)",
        _cookie,
    ),
    *(_assignment(name) for name in _KEYS),
)
