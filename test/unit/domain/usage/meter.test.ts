import { expect, test } from "vitest";
import { NO_ID, shownId } from "../../../../src/domain/usage/record.ts";

test("no id is shown as (none), and an id that looks like it is told apart", () => {
  const ids = [NO_ID, "(none)", "\\(none)", "\\\\(none)", "a (none)", "(none) a", "none", "w"];
  const shown = ids.map(shownId);
  expect(shown).toEqual([
    "(none)",
    "\\(none)",
    "\\\\(none)",
    "\\\\\\(none)",
    "a (none)",
    "(none) a",
    "none",
    "w",
  ]);
  expect(new Set(shown).size).toBe(ids.length);
});
