import { expect, test } from "vitest";
import type { OwnerFile } from "../../../../src/features/owners/owner.ts";
import { ownerFileAsCsv, parseOwners } from "../../../../src/features/owners/owner-file.ts";
import { seed, times } from "../../../support/drawn.ts";

/** An owner file that is exported as CSV says the same, but for its routes and what no table can hold. */

const SEED = seed();
const HOSTILE = [
  "a",
  "b",
  " a ",
  '"',
  "a,b",
  "=1+1",
  "x=y=z",
  "#1",
  "-",
  "'",
  "a\u2028b",
  "営業",
  "1.0",
  "a;b",
];

function filesOf(random: () => number) {
  const pick = <T>(of: readonly T[]) => of[Math.floor(random() * of.length)] as T;
  const maybe = <T>(key: string, value: T) => (random() < 0.4 ? { [key]: value } : {});
  const some = <T>(most: number, draw: () => T) => Array.from({ length: Math.floor(random() * most) }, draw);
  const divideBy = pick(["project", "user", "api_key"]);
  const rule = () => {
    const [about] = [
      pick([
        {},
        { [divideBy]: pick(HOSTILE) },
        { sandbox: pick(HOSTILE) },
        { name: pick(HOSTILE) },
        { tag: { [pick(HOSTILE)]: pick(HOSTILE) } },
        { owner_from_tag: pick(HOSTILE) },
      ]),
    ];
    const payees =
      "owner_from_tag" in about
        ? maybe("cost_center", pick(HOSTILE))
        : pick([
            { owner: pick(HOSTILE), ...maybe("cost_center", pick(HOSTILE)) },
            { shares: [{ owner: pick(HOSTILE), share: "1.0" }] },
            {
              shares: [
                { owner: "a", ...maybe("cost_center", "1"), share: "0.0001" },
                { owner: "b", share: ".9999" },
              ],
            },
          ]);
    return {
      ...maybe("source", "default"),
      ...maybe("workspace", "w"),
      ...maybe("from", "2026-10-01"),
      ...about,
      ...payees,
    };
  };
  const budget = () => ({
    ...pick([{ source: "default", per: "billing_period" }, maybe("source", "default")]),
    ...pick([{}, { owner: pick(HOSTILE) }, { workspace: "w" }, { project: pick(HOSTILE) }]),
    ...pick([{ traces: "250000" }, { amount: "99.5000000001", currency: "USD" }]),
    ...maybe("warn_at", ["100", "80"]),
  });
  return { divide_by: divideBy, rules: some(8, rule), budgets: some(4, budget) };
}

const said = ({ divideBy, rules, budgets }: OwnerFile) => ({
  divideBy,
  rules: rules.map(({ line: _, ...rule }) => rule),
  budgets: budgets.map(({ line: _, ...budget }) => budget),
});

test(`a file and its table say the same (SEED=${SEED})`, () => {
  let state = SEED;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
  for (let n = 0; n < times(300); n++) {
    const { divide_by, rules, budgets } = filesOf(random);
    const list = (all: readonly object[]) => `[\n${all.map((one) => JSON.stringify(one)).join(",\n")}\n]`;
    const content = `{ divide_by: ${divide_by}, rules: ${list(rules)}, budgets: ${list(budgets)} }`;
    const file = parseOwners("owners.yaml", content);
    const { csv, left } = ownerFileAsCsv(content);
    const lines = left.flatMap((one) => Number(/^Line (\d+)/.exec(one)?.[1] ?? []));
    for (const line of lines) {
      const at = file.rules.findIndex((rule) => rule.line === line);
      const [before, rule] = [file.rules.slice(0, at), file.rules[at]];
      const about = (one: typeof rule) => JSON.stringify({ ...one, line: 0, shares: [] });
      expect(rule?.tag?.key.includes("=") || before.some((one) => about(one) === about(rule)), csv).toBe(
        true,
      );
    }
    const kept = file.rules.filter(({ line }) => !lines.includes(line));
    const table = parseOwners("owners.csv", csv);
    expect(said(table), `${content}\n${csv}`).toEqual(said({ ...file, rules: kept }));
    expect(ownerFileAsCsv(csv)).toEqual({ csv, left: [] });
  }
});

test("what a table cannot hold is named", () => {
  const { csv, left } = ownerFileAsCsv(`# Who pays.
rules:
  - { owner: a, cost_center: "1" }
  - { tag: { "a=b": c }, owner: b }
  - { project: p, shares: [{ owner: a, share: 0.5 }, { owner: b, share: 0.5 }] }
  - { project: p, shares: [{ owner: a, share: 0.4 }, { owner: b, share: 0.6 }] }
routes:
  - { name: oncall, type: pagerduty, secret: USAGE_ROUTE_ONCALL }
`);
  expect(csv).toBe("project,owner,cost_center,share\n,a,1,\np,a,,0.5\np,b,,0.5\n");
  expect(left).toEqual([
    expect.stringMatching(/^Line 4: .* left out\.$/),
    expect.stringMatching(/^Line 6: .* left out\.$/),
    "1 route left out: oncall. Only a YAML file has routes, so a CSV file that is applied ends them.",
    "Comments are left out.",
  ]);
});
