#!/bin/sh
# Put jj into a folder: dev/jj.sh DEST, then DEST/bin/jj runs.
#
# Debian has jj from `forky` on. On an older Debian this takes it from there with the libraries that it needs, from
# the mirror that this machine's apt is set up for, and starts it through its own loader. The system's apt and
# libraries stay as they are: sources, lists and cache are temporary.
set -eu

suite=${JJ_SUITE:-forky}
dest=${1:?usage: dev/jj.sh DEST}

if [ -x "$dest/bin/jj" ] && "$dest/bin/jj" --version >/dev/null 2>&1; then
    echo "$("$dest/bin/jj" --version) is in $dest"
    exit 0
fi

if [ -e "$dest" ] && [ ! -e "$dest/bin/jj" ] && [ -n "$(ls -A "$dest")" ]; then
    echo "$dest is there already and holds something else" >&2
    exit 1
fi

for tool in apt-get apt-cache dpkg; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: this needs a Debian system" >&2; exit 1; }
done

mkdir -p "$(dirname "$dest")"
dest=$(cd "$(dirname "$dest")" && pwd)/$(basename "$dest")
temp=$(mktemp -d "$dest.XXXXXX")
trap 'rm -rf "$temp"' EXIT
trap 'exit 130' INT TERM

# The line of this release's own index: 'MIRROR/dists/RELEASE/InRelease' and a file name.
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
mirror=$(apt-get update --print-uris | sed -n "s|^'\(.*\)/dists/$release/InRelease'.*|\1|p" | grep '/debian$' | head -n 1)
[ -n "$mirror" ] || { echo "apt knows no Debian mirror for $release" >&2; exit 1; }

mkdir -p "$temp/apt/lists/partial" "$temp/apt/cache/archives/partial" "$temp/apt/parts" "$temp/debs" "$temp/out/root" "$temp/out/bin"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
echo "deb [signed-by=$keyring] $mirror $suite main" >"$temp/apt/sources.list"
: >"$temp/apt/status"

# apt with nothing of the system's but its settings and keys.
other_apt() {
    program=$1
    shift
    "$program" -q -o Dir::Etc::SourceList="$temp/apt/sources.list" -o Dir::Etc::SourceParts="$temp/apt/parts" \
        -o Dir::State::Lists="$temp/apt/lists" -o Dir::State::Status="$temp/apt/status" \
        -o Dir::Cache="$temp/apt/cache" -o APT::Sandbox::User=root "$@"
}

other_apt apt-get update
packages=$(other_apt apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
    --no-enhances jujutsu | grep -E '^(jujutsu|lib[^ :]*)$' | sort -u)
# shellcheck disable=SC2086 # one word a package
(cd "$temp/debs" && other_apt apt-get download $packages)
for deb in "$temp"/debs/*.deb; do
    dpkg -x "$deb" "$temp/out/root"
done

# Found anew at every start, so that the folder can be moved.
cat >"$temp/out/bin/jj" <<'WRAPPER'
#!/bin/sh
root=$(dirname "$(dirname "$(readlink -f "$0")")")/root
for loader in "$root"/usr/lib/*-linux-gnu*/ld-linux*.so.*; do
    exec "$loader" --library-path "$(dirname "$loader")" "$root/usr/bin/jj" "$@"
done
WRAPPER
chmod +x "$temp/out/bin/jj"
"$temp/out/bin/jj" --version

rm -rf "$dest"
mv "$temp/out" "$dest"
echo "jj is in $dest"
