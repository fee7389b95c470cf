import { expect, test } from "vitest";
import { stepAbout } from "../../../src/domain/coverage/failure-steps.ts";

test.each([
  ["server_error", "To ask now, retry."],
  ["network", "To ask now, retry."],
  ["timeout", "To ask now, retry."],
  ["answer_cut", "To ask now, retry."],
  ["answer_too_large", "USAGE_ANSWER_LIMIT"],
  ["answer_invalid", "USAGE_BASE_URL"],
  ["request_refused", "the platform's own words"],
  ["redirect_refused", "USAGE_BASE_URL"],
  ["workspace_unverified", "`usage-etl workspace list`"],
  ["window_unconfirmed", "fetched again after an hour"],
  ["task_poisoned", "the logs of the workers"],
  ["bucket_missing", "to the platform"],
  ["workspace_unasked", "to the platform"],
  ["id_too_long", "to the platform"],
  ["ids_too_many", "less is asked for"],
  ["stride_differs", "planned one stride finer"],
  ["bucket_misplaced", "planned one stride finer"],
  ["of_a_later_release", "Read the message, then retry."],
])("a fetch task that failed with %s says: %s", (code, step) => {
  expect(stepAbout(code)).toContain(step);
});
