"""The named rules that spell a token differently.

A rule returns a token that it does not change, so that rules can be joined.
"""

import re
import unicodedata
from collections.abc import Callable

# Several spellings are in the order in which they are tried.
Spelled = str | tuple[str, ...]

_SOFT_HYPHEN = "\u00ad"
# The dashes of Unicode that join words.
_HYPHENS = re.compile("[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]")
# Not between two digits: "3-2" is not "32".
_JOINT = re.compile(r"(?<=[^\W\d_])-(?=[^\W_])|(?<=[^\W_])-(?=[^\W\d_])")
_APOSTROPHES = re.compile("['`\u00b4\u02bb\u02bc\u2018\u2019\u201b\u2032\uff07]")
_SPACES = re.compile(r"(?<=[^ ]) +(?=[^ ])")
_ACCENTS = re.compile("[\u0300-\u036f]")
_DIGIT = re.compile("[0-9]")
_DIGITS = re.compile("[0-9]{2,}")


def _title(token: str) -> Spelled:
    capitalized = token.capitalize()
    return capitalized if token.isascii() and token.isalpha() else (capitalized, token.title())


def _digits_to_hashes(token: str) -> Spelled:
    if not _DIGIT.search(token):
        return token
    return _DIGITS.sub(lambda run: "#" * len(run[0]), token), _DIGIT.sub("#", token)


def _hyphens(token: str) -> Spelled:
    if not _HYPHENS.search(token) and _SOFT_HYPHEN not in token:
        return token
    plain = _HYPHENS.sub("-", token.replace(_SOFT_HYPHEN, ""))
    return plain, _JOINT.sub("", plain), _JOINT.sub("_", plain)


def _apostrophes(token: str) -> Spelled:
    if not _APOSTROPHES.search(token):
        return token
    plain = _APOSTROPHES.sub("'", token)
    return plain, plain.replace("'", "\u2019")


def _accents(token: str) -> str:
    if token.isascii():
        return token
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", token)))


def _spaces(token: str) -> Spelled:
    if " " not in token:
        return token
    # Spaces at either end are kept: they do not join words.
    return tuple(_SPACES.sub(joint, token) for joint in ("_", "-", ""))


def with_prefix(prefix: str) -> Callable[[str], Spelled]:
    """Return the rule that puts a prefix before each token.

    >>> with_prefix("/c/en/")("york")
    '/c/en/york'
    """
    return lambda token: prefix + token


RULES: dict[str, Callable[[str], Spelled]] = {
    "lower": str.lower,
    "title": _title,
    "upper": str.upper,
    "nfc": lambda token: unicodedata.normalize("NFC", token),
    "nfkc": lambda token: unicodedata.normalize("NFKC", token),
    "digits-0": lambda token: _DIGIT.sub("0", token),
    "digits-#": _digits_to_hashes,
    "hyphens": _hyphens,
    "spaces": _spaces,
    "apostrophes": _apostrophes,
    "accents": _accents,
}
