"""Completion for zsh and fish: which words and options follow which command."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Tree:
    """The commands: what may follow their beginnings, and their options."""

    words: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, command: str, options: Sequence[str]) -> None:
        """Add a command with its long options."""
        words = command.split()
        for length, word in enumerate(words):
            self.words[" ".join(words[:length])].add(word)
        self.options[command] = tuple(sorted(options))


_ZSH = """\
#compdef {name}
# Completion of {name} for zsh: save it as _{name} in a folder of $fpath, or source it.
typeset -gA _{id}_words _{id}_options
_{id}_words=(
{words})
_{id}_options=(
{options})
_{id}() {{
  local word at='' longer
  for word in ${{words[2,CURRENT-1]}}; do
    [[ $word == -* ]] && continue
    longer="${{at:+$at }}$word"
    (( ${{+_{id}_words[$longer]}} || ${{+_{id}_options[$longer]}} )) && at=$longer
  done
  if [[ ${{words[CURRENT]}} == -* ]]; then
    compadd -- ${{=_{id}_options[$at]}}
  else
    compadd -- ${{=_{id}_words[${{at:-.}}]}} || _files
  fi
}}
compdef _{id} {name}
"""
_FISH_HEAD = """\
# Completion of {name} for fish: save it as {name}.fish in ~/.config/fish/completions.
set -g __{id}_known {known}
function __{id}_at
    set -l at ''
    for word in (commandline -opc)[2..]
        string match -q -- '-*' $word; and continue
        set -l longer (string trim -- "$at $word")
        contains -- $longer $__{id}_known; and set at $longer
    end
    test "$at" = "$argv"
end
"""


def zsh(name: str, tree: Tree) -> str:
    """Return the script for zsh."""
    return _ZSH.format(
        name=name,
        id=name.replace("-", "_"),
        # an empty key can't be looked up
        words=_pairs({beginning or ".": sorted(words) for beginning, words in tree.words.items()}),
        options=_pairs({command: options for command, options in tree.options.items() if options}),
    )


def _pairs(table: Mapping[str, Sequence[str]]) -> str:
    return "".join(
        f"  {shlex.quote(key)} {shlex.quote(' '.join(table[key]))}\n" for key in sorted(table)
    )


def fish(name: str, tree: Tree) -> str:
    """Return the script for fish."""
    identifier = name.replace("-", "_")
    known = sorted({*tree.words, *tree.options} - {""})
    head = _FISH_HEAD.format(name=name, id=identifier, known=" ".join(map(shlex.quote, known)))
    return head + "".join(_fish_lines(name, identifier, tree))


def _fish_lines(name: str, identifier: str, tree: Tree) -> Iterator[str]:
    for beginning in sorted(tree.words):
        words = " ".join(sorted(tree.words[beginning]))
        yield f"complete -c {name} -f -n '__{identifier}_at {beginning}' -a '{words}'\n"
    for command, options in sorted(tree.options.items()):
        where = f"complete -c {name} -n '__{identifier}_at {command}'"
        for option in options:
            yield f"{where} -l {option.removeprefix('--')}\n"


SHELLS: Mapping[str, Callable[[str, Tree], str]] = {"zsh": zsh, "fish": fish}
"""{shell: what makes its script}; that for bash is cliff's."""
