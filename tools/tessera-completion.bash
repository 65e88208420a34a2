# Bash completion for tessera and ./x:  source tools/tessera-completion.bash
#
# Subcommands and options are read from the program's own --help, so there is no list here to keep.

# Words of `PROGRAM [SUBCOMMAND] --help` that begin with --, or, with "subcommands", its list of subcommands.
_tessera_words() {
  local kind=$1
  shift
  local help
  help=$("$@" --help 2>/dev/null) || return
  if [ "$kind" = options ]; then
    grep -oE -- '--[a-z][a-z0-9-]*' <<<"$help" | sort -u
  else
    sed -n '/^Subcommands:/,/^[^ ]/{s/^  \([a-z][a-z0-9-]*\).*/\1/p}' <<<"$help"
  fi
}

_tessera() {
  local program=$1 current=$2 previous=$3
  local subcommand=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_tessera_words subcommands "$program") --help" -- "$current")
    return
  fi
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_tessera_words options "$program" "$subcommand")" -- "$current")
    return
  fi
  case $previous in
    --output-dir | --check | --test-set | --dump) mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    --input)
      # NAME=FILE: complete the file, keep the name.
      mapfile -t COMPREPLY < <(compgen -f -- "${current#*=}")
      ;;
    --device) mapfile -t COMPREPLY < <(compgen -W "cpu" -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
  esac
}

_tessera_x() {
  local verb=${COMP_WORDS[1]}
  if [ "$COMP_CWORD" = 1 ]; then
    local verbs
    verbs=$("$1" --help 2>/dev/null | sed -n 's/^  \([a-z]\+\) .*/\1/p')
    mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$2")
    return
  fi
  case $verb in
    build) mapfile -t COMPREPLY < <(compgen -W "release debug asan tsan" -- "$2") ;;
    test) mapfile -t COMPREPLY < <(compgen -W "--fast --all -R" -- "$2") ;;
    fuzz) mapfile -t COMPREPLY < <(compgen -W "--seconds" -- "$2") ;;
    check) mapfile -t COMPREPLY < <(compgen -W "--tidy" -- "$2") ;;
    *) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
  esac
}

complete -o filenames -F _tessera tessera
complete -F _tessera_x x
