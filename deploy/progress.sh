# Progress output of long commands. Sourced by the other scripts in this folder.

# duration SECONDS: prints "45 s" or "3 min 20 s".
duration() {
  if [ "$1" -lt 60 ]; then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

# seconds_left ELAPSED PARTS USUAL: prints the estimate of a command that takes USUAL seconds as a rule, 0 if unknown,
# and has done PARTS of 1000 in ELAPSED. Its own pace counts the more, the more is done: alone from half of it on.
seconds_left() {
  local elapsed=$1 parts=$2 usual=$3 weight total
  weight=$((parts < 500 && usual > 0 ? 2 * parts : 1000))
  total=$(((usual * (1000 - weight) + elapsed * 1000 * weight / parts) / 1000))
  echo $((total > elapsed ? total - elapsed : 1))
}

# with_progress NAME LOG DONE USUAL COMMAND...: runs COMMAND, which takes USUAL seconds as a rule, 0 if unknown, with its
# output in LOG. Prints a line every second on a terminal, every 10 s elsewhere. DONE is a function that reads the
# log and prints the completed share in parts of 1000. Returns COMMAND's status; on failure prints the end of the log.
with_progress() {
  local name=$1 log=$2 done_parts=$3 usual=$4 begin=$SECONDS status=0 elapsed parts left line tick=10
  shift 4
  [ -t 1 ] && tick=1
  "$@" >"$log" 2>&1 </dev/null &
  local pid=$!
  # An interrupted script must not leave the command running.
  trap 'kill -TERM '"$pid"' 2>/dev/null; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    elapsed=$((SECONDS - begin))
    if [ "$elapsed" -ge "$tick" ] && [ $((elapsed % tick)) -eq 0 ]; then
      parts=$("$done_parts" "$log" 2>/dev/null)
      line="$name: $(duration "$elapsed")"
      if [ "${parts:-0}" -ge 20 ]; then
        left=$(seconds_left "$elapsed" "$parts" "$usual")
        line="$line, $((parts / 10)) % done, about $(duration "$left") left"
      fi
      if [ -t 1 ]; then printf '\r\033[K%s' "$line"; else echo "$line"; fi
    fi
    sleep 1
  done
  wait "$pid" || status=$?
  trap - INT TERM
  [ -t 1 ] && printf '\r\033[K'
  if [ "$status" -ne 0 ]; then
    echo "$name: failed after $(duration $((SECONDS - begin))); the end of $log:" >&2
    { grep -aE '(error|Error|E): |FAILED' "$log" | head -n 10; echo ...; tail -n 15 "$log"; } | cut -c1-106 | sed 's/^/    /' >&2
    return "$status"
  fi
  echo "$name: done in $(duration $((SECONDS - begin)))"
}
