#!/usr/bin/env bash
# Write comparison.md as a comment on the pull request NUMBER of REPOSITORY, in place of the comment
# that an earlier push got for the same run. Without the right to comment, as for pull requests from
# forks, the job's summary has the comparison.
set -euo pipefail
page=$RUNNER_TEMP/comparison.md
[ -f "$page" ] || exit 0
mark=$(head -n 1 "$page")
comments=repos/$REPOSITORY/issues
{
  id=$(MARK=$mark gh api --paginate "$comments/$NUMBER/comments" \
    --jq '.[] | select(.body | startswith(env.MARK)) | .id' | head -n 1) &&
    if [ -n "$id" ]; then
      gh api --silent --method PATCH "$comments/comments/$id" --field "body=@$page"
    else
      gh api --silent --method POST "$comments/$NUMBER/comments" --field "body=@$page"
    fi
} || echo "::warning::no comment on the pull request: the job needs \`permissions: pull-requests: write\`"
