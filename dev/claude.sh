#!/bin/sh
# Put Claude Code into a folder for tests: dev/claude.sh DEST, then DEST/node_modules/.bin/claude runs.
#
# By npm, from the registry that this machine's npm is set up for. Nothing of the system's is changed but that nodejs and
# npm are installed where they are missing and that is possible.
set -eu

version=${CLAUDE_VERSION:-~2.1.197}
dest=${1:?usage: dev/claude.sh DEST}
program=node_modules/.bin/claude

if [ -x "$dest/$program" ] && "$dest/$program" --version >/dev/null 2>&1; then
    echo "$("$dest/$program" --version) is in $dest"
    exit 0
fi

if [ -e "$dest" ] && [ ! -e "$dest/$program" ] && [ -n "$(ls -A "$dest")" ]; then
    echo "$dest is there already and holds something else" >&2
    exit 1
fi

if ! command -v npm >/dev/null; then
    [ "$(id -u)" -eq 0 ] && as_root= || as_root="sudo -n"
    $as_root apt-get install -y -q nodejs npm >/dev/null 2>&1 ||
        { $as_root apt-get update -q && $as_root apt-get install -y -q nodejs npm; } >/dev/null 2>&1 ||
        { echo "npm is missing, and cannot be installed here" >&2; exit 1; }
fi

mkdir -p "$(dirname "$dest")"
dest=$(cd "$(dirname "$dest")" && pwd)/$(basename "$dest")
temp=$(mktemp -d "$dest.XXXXXX")
trap 'rm -rf "$temp"' EXIT
trap 'exit 130' INT TERM

npm install --prefix "$temp" --no-fund --no-audit --loglevel=error "@anthropic-ai/claude-code@$version"
HOME="$temp" "$temp/$program" --version

rm -rf "$dest"
mv "$temp" "$dest"
echo "Claude Code is in $dest"
