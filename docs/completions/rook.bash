# Completions of rook for bash.
_rook() {
  local line="${COMP_LINE:0:COMP_POINT}" word="${COMP_WORDS[COMP_CWORD]}" typed each
  local -a words=() found=()
  read -ra words <<<"$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  typed="${words[-1]}"
  mapfile -t found < <(rook complete -- "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  for each in "${found[@]}"; do
    # A list on the screen says what each word is; what goes onto the line is the word alone.
    [[ "$COMP_TYPE" == 63 && ${#found[@]} -gt 1 ]] || each="${each%% *}"
    # bash breaks words at @ and =, and replaces only what is behind them.
    COMPREPLY+=("${each#"${typed%"$word"}"}")
  done
}
complete -o default -F _rook rook
