"""``kubevnfm completion SHELL``: a script for the shell, which asks this command for the words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubevnfm_cli.call import Call, Parser
from kubevnfm_cli.faults import DONE, UsageFault

_BASH: Final = r"""# kubevnfm completion for bash: source <(kubevnfm completion bash)
_kubevnfm() {
    local IFS=$'\n'
    COMPREPLY=($(command kubevnfm completion words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${#COMPREPLY[@]} -eq 0 && "${COMP_WORDS[COMP_CWORD-1]}" != "" ]] && compopt -o default 2>/dev/null
    [[ "${COMPREPLY[0]}" == *= ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -F _kubevnfm kubevnfm
"""
_ZSH: Final = r"""#compdef kubevnfm
# kubevnfm completion for zsh: source <(kubevnfm completion zsh), or as a file _kubevnfm in a folder of fpath
_kubevnfm() {
    local -a found
    found=("${(@f)$(command kubevnfm completion words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
if [[ "${funcstack[1]}" == "_kubevnfm" ]]; then _kubevnfm "$@"; else compdef _kubevnfm kubevnfm; fi
"""
_FISH: Final = r"""# kubevnfm completion for fish: kubevnfm completion fish | source
function __kubevnfm_words
    set -l words (commandline -opc)
    command kubevnfm completion words $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c kubevnfm -a '(__kubevnfm_words)'
"""
_WORDS: Final = "words"
_SCRIPTS: Final[Mapping[str, str]] = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def arguments(parser: Parser) -> None:
    """Add the arguments."""
    parser.epilog = """\
bash: source <(kubevnfm completion bash)        in ~/.bashrc
zsh:  source <(kubevnfm completion zsh)         in ~/.zshrc, after compinit
fish: kubevnfm completion fish | source         in ~/.config/fish/config.fish
Ids and names come from the gateway of the command; if it does not answer within a second, none are offered."""
    parser.add_argument("shell", nargs="?", metavar="SHELL", help="bash, zsh or fish")
    # Not the values of an option: argparse would take `--` from them, with which each option begins.
    parser.add_argument(
        "words",
        nargs="...",
        metavar="WORD",
        help="behind `words`: print what the last one could become; for the scripts",
    )


def run(call: Call) -> int:
    """Print the script of a shell, or words."""
    shell, words = call.given.shell, call.given.words
    if shell == _WORDS:
        from kubevnfm_cli.completing import candidates

        call.out.stream.write("".join(f"{word}\n" for word in candidates(words, call.environment)))
        return DONE
    if shell not in _SCRIPTS or words:
        raise UsageFault(f"one of {', '.join(_SCRIPTS)} expected")
    call.out.stream.write(_SCRIPTS[shell])
    return DONE
