# Completions of rook for fish.
function __rook_complete
  set -l before (commandline -opc)
  set -l typed (commandline -ct)
  set -l found (rook complete -- $before[2..] "$typed" 2>/dev/null)
  if test (count $found) -eq 0
    __fish_complete_path "$typed"
  else
    string replace ' ' \t -- $found
  end
end
complete -c rook -f -a '(__rook_complete)'
