# Completions for rook.
_rook() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" group="" verb="" words="" key each
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$each" in -*) continue ;; esac
    if [ -z "$group" ]; then group="$each"; elif [ -z "$verb" ]; then verb="$each"; fi
  done
  [ -z "$group" ] && { COMPREPLY=($(compgen -W "init task epic learning data vcs events config doctor completion" -- "$word")); return; }
  for key in "$group $verb $before" "$group $verb" "$group "; do
    case "$key" in
    "task ") words="archive block cancel claim complete create delete fail get list next-ready progress release renew reopen search start tree unarchive unblock update" ;;
    "epic ") words="archive cancel create delete get list progress reopen tree unarchive update" ;;
    "learning ") words="add delete list search" ;;
    "data ") words="export import" ;;
    "vcs ") words="cleanup commit detect diff log status" ;;
    "config ") words="explain show" ;;
    "init ") words="--yes --force --json --quiet --no-color --directory --config" ;;
    "task archive") words="--json --quiet --no-color --directory --config" ;;
    "task block") words="--by --json --quiet --no-color --directory --config" ;;
    "task cancel") words="--reason --json --quiet --no-color --directory --config" ;;
    "task claim") words="--epic --agent --lease --json --quiet --no-color --directory --config" ;;
    "task complete") words="--result --learning --agent --attempt --json --quiet --no-color --directory --config" ;;
    "task create") words="--description --context --parent --priority --blocked-by --json --quiet --no-color --directory --config" ;;
    "task delete") words="--force --json --quiet --no-color --directory --config" ;;
    "task fail") words="--reason --agent --json --quiet --no-color --directory --config" ;;
    "task get") words="--json --quiet --no-color --directory --config" ;;
    "task list") words="--parent --epic --state --kind --ready --blocked --open --completed --archived --flat --limit --cursor --json --quiet --no-color --directory --config" ;;
    "task list --state") words="PENDING IN_PROGRESS PENDING_REVIEW NEEDS_REBASE APPROVED AWAITING_HUMAN_REVIEW COMPLETED CANCELLED FAILED" ;;
    "task list --kind") words="epic task subtask" ;;
    "task next-ready") words="--epic --json --quiet --no-color --directory --config" ;;
    "task progress") words="--json --quiet --no-color --directory --config" ;;
    "task release") words="--agent --json --quiet --no-color --directory --config" ;;
    "task renew") words="--agent --lease --json --quiet --no-color --directory --config" ;;
    "task reopen") words="--json --quiet --no-color --directory --config" ;;
    "task search") words="--limit --json --quiet --no-color --directory --config" ;;
    "task start") words="--checkout --base --agent --json --quiet --no-color --directory --config" ;;
    "task tree") words="--json --quiet --no-color --directory --config" ;;
    "task unarchive") words="--json --quiet --no-color --directory --config" ;;
    "task unblock") words="--by --json --quiet --no-color --directory --config" ;;
    "task update") words="--title --description --context --priority --parent --json --quiet --no-color --directory --config" ;;
    "epic archive") words="--json --quiet --no-color --directory --config" ;;
    "epic cancel") words="--reason --json --quiet --no-color --directory --config" ;;
    "epic create") words="--description --context --design --priority --blocked-by --json --quiet --no-color --directory --config" ;;
    "epic delete") words="--force --json --quiet --no-color --directory --config" ;;
    "epic get") words="--json --quiet --no-color --directory --config" ;;
    "epic list") words="--state --open --completed --archived --limit --cursor --json --quiet --no-color --directory --config" ;;
    "epic list --state") words="PENDING IN_PROGRESS PENDING_REVIEW NEEDS_REBASE APPROVED AWAITING_HUMAN_REVIEW COMPLETED CANCELLED FAILED" ;;
    "epic progress") words="--json --quiet --no-color --directory --config" ;;
    "epic reopen") words="--json --quiet --no-color --directory --config" ;;
    "epic tree") words="--json --quiet --no-color --directory --config" ;;
    "epic unarchive") words="--json --quiet --no-color --directory --config" ;;
    "epic update") words="--title --description --context --design --priority --json --quiet --no-color --directory --config" ;;
    "learning add") words="--source --json --quiet --no-color --directory --config" ;;
    "learning delete") words="--json --quiet --no-color --directory --config" ;;
    "learning list") words="--json --quiet --no-color --directory --config" ;;
    "learning search") words="--limit --json --quiet --no-color --directory --config" ;;
    "data export") words="--json --quiet --no-color --directory --config" ;;
    "data import") words="--clear --json --quiet --no-color --directory --config" ;;
    "vcs cleanup") words="--delete --json --quiet --no-color --directory --config" ;;
    "vcs commit") words="--message --json --quiet --no-color --directory --config" ;;
    "vcs detect") words="--json --quiet --no-color --directory --config" ;;
    "vcs diff") words="--patch --json --quiet --no-color --directory --config" ;;
    "vcs log") words="--limit --json --quiet --no-color --directory --config" ;;
    "vcs status") words="--json --quiet --no-color --directory --config" ;;
    "events ") words="--follow --since --agent --type --limit --json --quiet --no-color --directory --config" ;;
    "config explain") words="--json --quiet --no-color --directory --config" ;;
    "config show") words="--json --quiet --no-color --directory --config" ;;
    "doctor ") words="--fix --category --json --quiet --no-color --directory --config" ;;
    "completion ") words="bash zsh fish --json --quiet --no-color --directory --config" ;;
    esac
    [ -n "$words" ] && break
  done
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [ ${#COMPREPLY[@]} -eq 0 ] && COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _rook rook
