const PASSING = "A temporary fault outlasted every attempt. Syncs retry it. To request it now, retry.";

const STEPS: Readonly<Record<string, string>> = {
  server_error: PASSING,
  network: PASSING,
  timeout: PASSING,
  response_cut: PASSING,
  response_too_large:
    "Raise USAGE_RESPONSE_LIMIT if usage is really that large. Else report it to the platform.",
  response_invalid:
    "Report a bad record to the platform: all other buckets are loaded. If the response is not the platform's at all, check USAGE_BASE_URL and proxies.",
  request_refused: "The platform refused the request. Retry, or send the message to its support.",
  redirect_refused: "Set USAGE_BASE_URL to that host if it is right, then retry.",
  workspace_unverified:
    "Give the key access to that workspace, or leave it out: `usage-etl status` names those that no response ever named. Then retry.",
  window_unconfirmed: "It is fetched again after an hour. To request it now, retry.",
  task_poisoned: "Look at the logs of the workers that took it, then retry.",
  bucket_missing: "Report it to the platform.",
  workspace_unasked: "Report it to the platform.",
  id_too_long: "Report it to the platform.",
  ids_too_many: "Nothing: less is requested at once. If one bucket stays, report it to the platform.",
  stride_differs: "Nothing: it is planned one stride finer. `usage-etl doctor` shows what was learned.",
  bucket_misplaced: "Nothing: it is planned one stride finer. `usage-etl doctor` shows what was learned.",
};

export function stepAbout(code: string): string {
  return STEPS[code] ?? "Read the message, then retry.";
}
