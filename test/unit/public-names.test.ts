import { readFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import {
  columnsByView,
  describeColumns,
  LIST,
  missingNames,
  newestSection,
  publicNames,
  unsaidNames,
} from "../support/public-names.ts";

/** docs/upgrading/names.txt: the public names of the last release. */

const list = readFileSync(LIST, "utf8").trim().split("\n");
let now: string[];
beforeAll(async () => {
  now = await publicNames();
});

test("a public name of the last release is there, or the changelog says that it is gone", () => {
  const { named, isFirst, isReleased } = newestSection();
  const next =
    isFirst && !isReleased
      ? "No release had them yet: run `npm run names`."
      : `Give them back. Or name each as code, such as \`sync --inline\`, under "### Upgrade" or "### Removed" in the newest section of
CHANGELOG.md, and say what replaces it. Columns are named by their view, or as \`view.column\`.`;
  const unsaid = unsaidNames(missingNames(list, now), named);
  expect(unsaid, `Public names are gone. ${next}`).toEqual([]);
});

test("the list holds all names once a version is released", () => {
  const expected = newestSection().isReleased ? now : list;
  const next = "Run `npm run names` for a release. After one, begin the next version in CHANGELOG.md.";
  expect(list, next).toEqual(expected);
});

test("the list has names of each kind, sorted", () => {
  const kinds = new Set(list.map((line) => line.split(" ")[0]));
  expect([...kinds].sort().join(" ")).toBe("columns command error exit function metric option setting view");
  expect(list).toEqual([...list].sort());
  expect(list).toEqual(expect.arrayContaining(["command backfill show", "option sync --inline", "exit 6"]));
});

test("what the newest section names under Upgrade or Removed may be gone, and columns may be appended", () => {
  const columns = columnsByView().get("dim_date") ?? [];
  const first = `columns ${describeColumns("dim_date", columns.slice(0, 5))}`;
  expect(missingNames([first], now)).toEqual([]);
  const changed = `columns ${describeColumns("dim_date", columns.slice(1))}`;
  const gone = ["setting USAGE_GONE", "command old", "option old --now", "command gone", "exit 9", changed];
  expect(missingNames([...now, ...gone], now)).toEqual(gone);
  const { named, isReleased } = newestSection(`# Changelog

## [0.4.0] - 2027-01-02

### Load

- Load by \`gone\`.

### Removed

- \`USAGE_GONE\`, \`dim_date.day_name\` and \`usage-etl old\` are gone.

## [0.3.0] - 2026-12-01

### Removed

- \`gone\`
`);
  expect(isReleased).toBe(true);
  expect(unsaidNames(gone, named)).toEqual(["command gone", "exit 9"]);
});
