import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { LIST, missingNames, newestSection, publicNames, unsaidNames } from "../support/public-names.ts";

test("a public name of the last release is there, or the changelog says that it is gone", async () => {
  const list = readFileSync(LIST, "utf8").trim().split("\n");
  const { named, isFirst, isReleased } = newestSection();
  const next =
    isFirst && !isReleased
      ? "No release had them yet: run `npm run names`."
      : "Give them back. Or name each as code, such as `sync --inline`, under Upgrade or Removed in the newest section of CHANGELOG.md.";
  const unsaid = unsaidNames(missingNames(list, await publicNames()), named);
  expect(unsaid, `Public names are gone. ${next}`).toEqual([]);
});
