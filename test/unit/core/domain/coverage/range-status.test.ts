import { expect, test } from "vitest";
import type { RangeLine } from "../../../../../src/core/domain/coverage/range-status.ts";
import { rangeSentence } from "../../../../../src/core/domain/coverage/range-status.ts";

const line = (
  status: RangeLine["status"],
  buckets: number,
  of: Partial<Pick<RangeLine, "stride" | "meter">> = {},
): RangeLine => ({
  meter: "traces",
  groupBy: "user",
  stride: "day",
  status,
  code: null,
  buckets,
  retryAt: null,
  first: 0,
  end: 1,
  ...of,
});

test("nothing is claimed of what is not loaded", () => {
  const [missing, failed, none] = [line("missing", 2), line("failed", 2), line("not_available", 2)];
  expect(rangeSentence([])).toEqual({ sentence: "No usage is expected in that range.", open: [] });
  const loaded = line("final", 2);
  expect(rangeSentence([loaded, none])).toEqual({
    sentence:
      "All that the server responds is loaded: by day 2 final (figures by workspace and dimension). Not available:",
    open: [none],
  });
  // Without anything loaded that sentence would be empty.
  expect(rangeSentence([none])).toEqual({ sentence: "Not all of it is loaded:", open: [none] });
  expect(rangeSentence([missing])).toEqual({ sentence: "Not all of it is loaded:", open: [missing] });
  for (const other of [missing, failed, line("unverified", 2)]) {
    expect(rangeSentence([loaded, none, other])).toEqual({
      sentence: "Not all of it is loaded, only by day 2 final (figures by workspace and dimension):",
      open: [none, other],
    });
  }
});
