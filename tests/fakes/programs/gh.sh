#!/bin/bash
# Stands in for GitHub's `gh`. What it is called with it writes into files beside it; `remote` there names the repository.
# Flags that `gh` does not have, a missing token and a missing text are refused as `gh` refuses them.
here=$(dirname "$0")
printf '%s\n' "$*" >> "$here/args"
env | sort >> "$here/env"
pulls=$here/pulls
touch "$pulls"
fail() { echo "$1" >&2; exit "${2:-1}"; }
[ "$1" = --version ] && { echo "gh version 2.0.0"; exit 0; }
[ -n "$GH_TOKEN$GH_ENTERPRISE_TOKEN" ] || fail "To get started with GitHub CLI, please run:  gh auth login" 4
command="$1"; shift
[ "$command" = api ] || { command="$command $1"; shift; }

# flag=1: takes a value, flag=0: takes none
case "$command" in
  "pr list") flags=" repo=1 head=1 state=1 json=1 limit=1 jq=1 " ;;
  "pr create") flags=" repo=1 head=1 base=1 title=1 body=1 body-file=1 draft=0 " ;;
  "api") flags=" hostname=1 jq=1 method=1 header=1 field=1 " ;;
  *) fail "unknown command \"$command\" for \"gh\"" ;;
esac
declare -A given
operands=()
while [ $# -gt 0 ]; do
  case "$1" in
    --*)
      name=${1#--}
      case "$flags" in
        *" $name=1 "*) [ $# -gt 1 ] || fail "flag needs an argument: $1"; given[$name]=$2; shift ;;
        *" $name=0 "*) given[$name]=yes ;;
        *) fail "unknown flag: $1" ;;
      esac ;;
    *) operands+=("$1") ;;
  esac
  shift
done
url=https://github.example.org/acme/widgets/pull

case "$command" in
  "pr list")
    case "${given[repo]}" in */acme/widgets) ;; *) fail "GraphQL: Could not resolve to a Repository" ;; esac
    [ "${#operands[@]}" = 0 ] || fail "unknown argument \"${operands[0]}\""
    for field in ${given[json]//,/ }; do
      case $field in url|number|isDraft|isCrossRepository|state|title) ;; *) fail "Unknown JSON field: \"$field\"" ;; esac
    done
    answer=
    limit=${given[limit]:-30}
    # The branch of a stranger's fork has the same name, and comes first.
    [ -e "$here/stranger" ] && answer="{\"url\":\"$url/6\",\"number\":6,\"isDraft\":false,\"isCrossRepository\":true}"
    if grep -qxF -- "${given[head]}" "$pulls" && { [ -z "$answer" ] || [ "$limit" -gt 1 ]; }; then
      answer="$answer${answer:+,}{\"url\":\"$url/7\",\"number\":7,\"isDraft\":true,\"isCrossRepository\":false}"
    fi
    echo "[$answer]" ;;
  "pr create")
    [ -n "${given[repo]}" ] && [ -n "${given[head]}" ] || fail "must first push the current branch to a remote, or use the --head flag"
    [ -n "${given[title]}" ] && [ -n "${given[body]}${given[body-file]}" ] ||
      fail "must provide \`--title\` and \`--body\` (or \`--fill\` or \`fill-first\` or \`--fill-verbose\`) when not running interactively"
    case ${given[head]} in *refused*) fail "GraphQL: not with $GH_TOKEN" ;; esac
    grep -qxF -- "${given[head]}" "$pulls" &&
      fail "a pull request for branch \"${given[head]}\" into branch \"${given[base]}\" already exists:
$url/7"
    [ "${given[body-file]}" = - ] && cat > "$here/body"
    echo "${given[head]}" >> "$pulls"
    echo "$url/7" ;;
  api)
    [ "${#operands[@]}" = 1 ] || fail "accepts 1 arg(s), received ${#operands[@]}"
    case ${operands[0]} in
      repos/acme/widgets/commits/*)
        name=$(printf %s "${operands[0]##*/commits/}" | sed 's:%2F:/:g')
        tree=$(git --git-dir="$(cat "$here/remote")" rev-parse --verify --quiet "$name^{tree}") ||
          fail "gh: No commit found for SHA: $name (HTTP 422)"
        echo "$tree" ;;
      repos/acme/widgets) echo trunk ;;
      *) fail "gh: Not Found (HTTP 404)" ;;
    esac ;;
esac
