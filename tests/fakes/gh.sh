#!/bin/sh
# Stands in for GitHub's `gh`. What it is called with it writes into files beside it; `remote` there names the repository.
here=$(dirname "$0")
printf '%s\n' "$*" >> "$here/args"
env | sort >> "$here/env"
pulls=$here/pulls
case "$1 $2" in
  "--version ") echo "gh version 2.0.0" ;;
  "pr list")
    if grep -qxF "$6" "$pulls" 2>/dev/null; then
      echo '[{"url":"https://github.example.org/acme/widgets/pull/7","number":7,"isDraft":true}]'
    else
      echo '[]'
    fi ;;
  "pr create")
    case $6 in *refused*) echo "GraphQL: not with $GH_TOKEN" >&2; exit 1 ;; esac
    cat > "$here/body"
    echo "$6" >> "$pulls" ;;
  "api --hostname")
    case $4 in
      */commits/*)
        branch=$(printf %s "${4##*/commits/}" | sed 's:%2F:/:g')
        git --git-dir="$(cat "$here/remote")" rev-parse "$branch^{tree}" ;;
      *) echo trunk ;;
    esac ;;
  *) exit 9 ;;
esac
