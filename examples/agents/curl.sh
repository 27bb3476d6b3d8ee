#!/bin/sh
# Answers the turns of an external agent with curl and jq alone: says how many words the message has.
# Run with PARLEY_URL and AGENT_TOKEN.
set -eu

call() {
  curl -sS "$PARLEY_URL/api/$1" -H "authorization: Bearer $AGENT_TOKEN" \
    -H 'content-type: application/json' -d "$2"
}

while true; do
  turn=$(call claimTurn '{"wait_seconds":30}' | jq -c '.result // empty')
  [ -n "$turn" ] || continue
  id=$(printf %s "$turn" | jq .turn_id)
  words=$(printf %s "$turn" | jq -r '.message_id as $id | .context[] | select(.id == $id) | .content' | wc -w)
  call writeTurn "{\"turn_id\":$id,\"delta\":\"$((words)) words.\",\"offset\":0}" >/dev/null
  call finishTurn "{\"turn_id\":$id,\"status\":\"complete\"}" >/dev/null
done
