autoload -U +X bashcompinit && bashcompinit
# Completions for rook.
_rook() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" group="" verb="" words="" key each
  for each in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$each" in -*) continue ;; esac
    if [ -z "$group" ]; then group="$each"; elif [ -z "$verb" ]; then verb="$each"; fi
  done
  [ -z "$group" ] && { COMPREPLY=($(compgen -W "init task epic learning mail group data vcs sling stop nudge interrupt status inspect attach agents spec run feed logs trace errors replay costs metrics guard hook hooks prime agent worktree events config doctor completion" -- "$word")); return; }
  for key in "$group $verb $before" "$group $verb" "$group "; do
    case "$key" in
    "task ") words="archive block cancel claim complete create delete fail get list next-ready progress release renew reopen search start tree unarchive unblock update" ;;
    "epic ") words="archive cancel create delete get list progress reopen tree unarchive update" ;;
    "learning ") words="add delete list search" ;;
    "mail ") words="check list purge read reply send wait" ;;
    "group ") words="add create delete list remove" ;;
    "data ") words="export import" ;;
    "vcs ") words="cleanup commit detect diff log status" ;;
    "agents ") words="discover show" ;;
    "spec ") words="show write" ;;
    "run ") words="complete list show" ;;
    "guard ") words="explain test" ;;
    "hook ") words="prompt stop" ;;
    "hooks ") words="install status uninstall" ;;
    "agent ") words="restore snapshots" ;;
    "worktree ") words="clean list" ;;
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
    "mail check") words="--agent --inject --limit --json --quiet --no-color --directory --config" ;;
    "mail list") words="--from --to --type --unread --thread --agent --limit --cursor --json --quiet --no-color --directory --config" ;;
    "mail list --type") words="status question result error dispatch assign worker_done worker_died merge_ready merged merge_failed escalation health_check decision_gate rebase_request review_request" ;;
    "mail purge") words="--older-than --agent --all --json --quiet --no-color --directory --config" ;;
    "mail read") words="--json --quiet --no-color --directory --config" ;;
    "mail reply") words="--body --type --priority --payload --json --quiet --no-color --directory --config" ;;
    "mail reply --type") words="status question result error dispatch assign worker_done merge_ready merged merge_failed escalation health_check decision_gate rebase_request review_request" ;;
    "mail reply --priority") words="low normal high urgent" ;;
    "mail send") words="--to --subject --body --type --priority --thread --payload --json --quiet --no-color --directory --config" ;;
    "mail send --type") words="status question result error dispatch assign worker_done merge_ready merged merge_failed escalation health_check decision_gate rebase_request review_request" ;;
    "mail send --priority") words="low normal high urgent" ;;
    "mail wait") words="--timeout --from --thread --type --json --quiet --no-color --directory --config" ;;
    "mail wait --type") words="status question result error dispatch assign worker_done worker_died merge_ready merged merge_failed escalation health_check decision_gate rebase_request review_request" ;;
    "group add") words="--json --quiet --no-color --directory --config" ;;
    "group create") words="--json --quiet --no-color --directory --config" ;;
    "group delete") words="--json --quiet --no-color --directory --config" ;;
    "group list") words="--json --quiet --no-color --directory --config" ;;
    "group remove") words="--json --quiet --no-color --directory --config" ;;
    "data export") words="--json --quiet --no-color --directory --config" ;;
    "data import") words="--clear --json --quiet --no-color --directory --config" ;;
    "vcs cleanup") words="--delete --json --quiet --no-color --directory --config" ;;
    "vcs commit") words="--message --json --quiet --no-color --directory --config" ;;
    "vcs detect") words="--json --quiet --no-color --directory --config" ;;
    "vcs diff") words="--patch --json --quiet --no-color --directory --config" ;;
    "vcs log") words="--limit --json --quiet --no-color --directory --config" ;;
    "vcs status") words="--json --quiet --no-color --directory --config" ;;
    "sling ") words="--role --name --runtime --model --files --spec --parent --base --headless --tmux --profile --sibling --skip-review --max-agents --instructions --json --quiet --no-color --directory --config" ;;
    "sling  --role") words="coordinator lead builder scout reviewer merger monitor" ;;
    "sling  --runtime") words="scripted claude" ;;
    "sling  --profile") words="strict relaxed yolo" ;;
    "stop ") words="--clean --reason --json --quiet --no-color --directory --config" ;;
    "nudge ") words="--json --quiet --no-color --directory --config" ;;
    "interrupt ") words="--json --quiet --no-color --directory --config" ;;
    "status ") words="--all --watch --json --quiet --no-color --directory --config" ;;
    "inspect ") words="--follow --limit --json --quiet --no-color --directory --config" ;;
    "attach ") words="--json --quiet --no-color --directory --config" ;;
    "agents discover") words="--role --json --quiet --no-color --directory --config" ;;
    "agents discover --role") words="coordinator lead builder scout reviewer merger monitor" ;;
    "agents show") words="--json --quiet --no-color --directory --config" ;;
    "spec show") words="--json --quiet --no-color --directory --config" ;;
    "spec write") words="--body --json --quiet --no-color --directory --config" ;;
    "run complete") words="--json --quiet --no-color --directory --config" ;;
    "run list") words="--json --quiet --no-color --directory --config" ;;
    "run show") words="--json --quiet --no-color --directory --config" ;;
    "feed ") words="--agent --since --limit --json --quiet --no-color --directory --config" ;;
    "logs ") words="--follow --since --limit --json --quiet --no-color --directory --config" ;;
    "trace ") words="--follow --since --limit --json --quiet --no-color --directory --config" ;;
    "errors ") words="--agent --since --limit --json --quiet --no-color --directory --config" ;;
    "replay ") words="--run --agent --since --limit --json --quiet --no-color --directory --config" ;;
    "costs ") words="--by --agent --run --since --json --quiet --no-color --directory --config" ;;
    "costs  --by") words="agent role task epic run model turn" ;;
    "metrics ") words="--last --json --quiet --no-color --directory --config" ;;
    "guard explain") words="--profile --json --quiet --no-color --directory --config" ;;
    "guard explain --profile") words="strict relaxed yolo" ;;
    "guard test") words="--worktree --profile --json --quiet --no-color --directory --config" ;;
    "guard test --profile") words="strict relaxed yolo" ;;
    "hook prompt") words="--json --quiet --no-color --directory --config" ;;
    "hook stop") words="--json --quiet --no-color --directory --config" ;;
    "hooks install") words="--json --quiet --no-color --directory --config" ;;
    "hooks status") words="--json --quiet --no-color --directory --config" ;;
    "hooks uninstall") words="--json --quiet --no-color --directory --config" ;;
    "prime ") words="--agent --compact --json --quiet --no-color --directory --config" ;;
    "agent restore") words="--turn --force --json --quiet --no-color --directory --config" ;;
    "agent snapshots") words="--json --quiet --no-color --directory --config" ;;
    "worktree clean") words="--completed --all --ignored --force --dry-run --json --quiet --no-color --directory --config" ;;
    "worktree list") words="--size --json --quiet --no-color --directory --config" ;;
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
