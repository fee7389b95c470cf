import { expect, test } from "vitest";
import { type Check, notesOf } from "../../../src/cli/checks/check.ts";
import { noteRate } from "../../../src/cli/checks/platform.ts";

const CLOUD = "https://eu.api.smith.langchain.com";

test.each([
  [CLOUD, 333, []],
  [CLOUD, 334, ["rate_limit_high"]],
  // Its operator decides.
  ["https://smith.langchain.com.example.org", 1000, []],
  ["http://127.0.0.1:8080", 1000, []],
])("%s at %i requests per 10 s", (baseUrl, rateLimit, expected) => {
  const checks: Check[] = [];
  noteRate({ baseUrl, rateLimit }, notesOf(checks, "default"));
  expect(checks.map(({ code }) => code)).toEqual(expected);
});
