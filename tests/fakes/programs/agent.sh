#!/bin/sh
# Stands in for a coding agent: takes the prompt from stdin, does what its lines `fake: …` say, and speaks as the
# program that it is called as (claude, codex, pi).
name=$(basename "$0")
if [ "$1" = --version ]; then
  case $name in
    claude) echo "${FAKE_VERSION:-2.1.325} (Claude Code)" ;;
    codex) echo "codex-cli ${FAKE_VERSION:-0.166.0}" ;;
    pi) echo "${FAKE_VERSION:-1.5.0}" ;;
  esac
  exit 0
fi

quote() { printf '%s' "$1" | tr '\n\t' '  ' | sed 's/\\/\\\\/g; s/"/\\"/g'; }
start() {
  case $name in
    claude) echo '{"type":"system","subtype":"init","session_id":"s-1","model":"fake-1"}' ;;
    codex) echo '{"type":"thread.started","thread_id":"s-1"}'; echo '{"type":"turn.started"}' ;;
    pi) echo '{"type":"session","id":"s-1"}'; echo '{"type":"turn_start"}' ;;
  esac
}
say() {
  text=$(quote "$1")
  case $name in
    claude) printf '{"type":"assistant","message":{"id":"m-%s","content":[{"type":"text","text":"%s"}]}}\n' "$n" "$text" ;;
    codex) printf '{"type":"item.completed","item":{"type":"agent_message","text":"%s"}}\n' "$text" ;;
    pi) printf '{"type":"message_end","message":{"role":"assistant","stopReason":"stop","content":[{"type":"text","text":"%s"}],"usage":{"input":10,"output":5,"cacheRead":2,"cacheWrite":1,"cost":{"total":%s}}}}\n' "$text" "$cost" ;;
  esac
}
finish() {
  text=$(quote "$2")
  case $name in
    claude)
      case $text in "API Error: "[0-9]*) status=${text#API Error: }; status=${status%% *} ;; *) status=null ;; esac
      printf '{"type":"result","subtype":"%s","is_error":%s,"api_error_status":%s,"num_turns":%s,"result":"%s","session_id":"s-1","total_cost_usd":%s,"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":2,"cache_creation_input_tokens":1}}\n' "${subtype:-success}" "$1" "$status" "$n" "$text" "$cost" ;;
    codex)
      if [ "$1" = true ]; then printf '{"type":"turn.failed","error":{"message":"%s"}}\n' "$text"
      else echo '{"type":"turn.completed","usage":{"input_tokens":12,"cached_input_tokens":2,"output_tokens":5}}'; fi ;;
    pi) echo '{"type":"agent_end","messages":[]}' ;;
  esac
}

n=0
cost=0.25
last=done
[ -n "$FAKE_ARGV" ] && printf '%s\n' "$@" > "$FAKE_ARGV"
prompt=$(cat)
start
while IFS= read -r line; do
  case $line in "fake: "*) ;; *) continue ;; esac
  n=$((n + 1))
  set -- ${line#fake: }
  verb=$1
  rest=${line#fake: "$verb"}
  rest=${rest# }
  case $verb in
    say) last=$rest; say "$rest" ;;
    sh) eval "$rest"; say "ran" ;;
    cost) cost=$rest ;;
    subtype) subtype=$rest ;;
    error) finish true "$rest"; exit 1 ;;
    once) if [ ! -e "/tmp/fake-once-$2" ]; then : > "/tmp/fake-once-$2"; shift 2; finish true "$*"; exit 1; fi ;;
    silent) sleep 1000 ;;
    reconnect) while :; do echo '{"type":"error","message":"Reconnecting... 1/5"}'; sleep 0.05; done ;;
    more) finish false "$rest"; start; sleep 12 ;;
    hang) finish false "$last"; sleep 1000 ;;
    crash) kill -9 $$ ;;
    crash-once) if [ ! -e /tmp/fake-crashed ]; then : > /tmp/fake-crashed; kill -9 $$; fi ;;
  esac
done <<PROMPT
$prompt
PROMPT
[ "$name" = pi ] && say "$last"
finish false "$last"
