# Completions of rook for zsh, after compinit.
_rook() {
  local -a found described
  local each
  found=("${(@f)$(rook complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  for each in $found; do
    described+=("${${each%% *}//:/\\:}:${each#* }")
  done
  if (( $#described )); then _describe rook described -U; else _files; fi
}
compdef _rook rook
