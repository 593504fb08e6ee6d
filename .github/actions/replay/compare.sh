#!/usr/bin/env bash
# Compare a run at the commit BASE with the same run of the files that are checked out, and write
# comparison.md to RUNNER_TEMP. The exit code is that of `ringleaf compare`.
set -euo pipefail
if ! git cat-file -e "$BASE^{commit}" 2>/dev/null; then # a shallow clone lacks it
  git fetch --quiet --no-tags --depth=1 origin "$BASE"
fi
read -r -a words <<<"$RUN"
page=$RUNNER_TEMP/comparison.md
status=0
{
  echo "<!-- ringleaf compare $(sha256sum <<<"$RUN" | cut -c1-16) -->" # comment.sh finds its comment by it
  echo "\`ringleaf run $RUN\`, before and after:"
  echo
} >"$page"
ringleaf compare "$BASE" . --threshold "$THRESHOLD" --markdown -- "${words[@]}" >>"$page" || status=$?
grep -q '^[0-9]* rows: ' "$page" || echo "They could not be compared: see the job's log." >>"$page"
cat "$page" >>"$GITHUB_STEP_SUMMARY"
exit "$status"
