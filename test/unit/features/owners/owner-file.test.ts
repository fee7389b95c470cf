import { expect, test } from "vitest";
import { ruleFor } from "../../../../src/features/owners/owner.ts";
import { parseOwners } from "../../../../src/features/owners/owner-file.ts";

const parse = (content: string) => parseOwners("owners.yaml", content);

function problemsOf(content: string): string[] {
  try {
    parse(content);
  } catch (error) {
    expect(error).toMatchObject({ code: "file_invalid" });
    return (error as Error).message.split("\n  ").slice(1);
  }
  return [];
}

test("a file of all kinds of rules", () => {
  const file = parse(`# Who pays.
divide_by: user
rules:
  - { source: default, workspace: w1, user: 007, owner: search, cost_center: 100, from: 2026-10-01, to: 2026-11-01 }
  - tag: { Team: red }
    shares: [{ owner: a, share: 0.6 }, { owner: b, cost_center: c, share: .4 }]
  - owner_from_tag: Team
    cost_center: shared
  - { name: "chat-*", owner: "1.0" }
  - { owner: rest }
`);
  const none = { source: null, workspace: null, of: null, name: null, tag: null, from: null, to: null };
  const whole = (owner: string | null, costCenter: string | null = null) => [
    { owner, costCenter, share: 10_000 },
  ];
  expect(file.divideBy).toBe("user");
  expect(file.content.startsWith("# Who pays.")).toBe(true);
  expect(file.rules).toEqual([
    {
      ...none,
      line: 4,
      source: "default",
      workspace: "w1",
      of: { dimension: "user", id: "007" },
      from: "2026-10-01",
      to: "2026-11-01",
      shares: whole("search", "100"),
    },
    {
      ...none,
      line: 5,
      tag: { key: "Team", value: "red" },
      shares: [
        { owner: "a", costCenter: null, share: 6000 },
        { owner: "b", costCenter: "c", share: 4000 },
      ],
    },
    { ...none, line: 7, tag: { key: "Team", value: null }, shares: whole(null, "shared") },
    { ...none, line: 9, name: "chat-*", shares: whole("1.0") },
    { ...none, line: 10, shares: whole("rest") },
  ]);
});

test.each([
  ["{ owners: a, project: p }", [/^line 2, column 7: "owners" is not known; did you mean owner\?$/]],
  [
    "shares:\n      - { owner: a, share: 0.4 }\n      - { owner: b, share: 0.5 }",
    [/^line 3, column 7: the shares add up to 0.9, not to 1$/],
  ],
  ["shares: [{ owner: a, share: 0.6 }, { owner: b, share: 0.5 }]", [/add up to 1.1, not to 1$/]],
  [
    "shares: [{ owner: a, share: 0.33333 }, { owner: b, share: 0.66667 }]",
    [/^line 2, column 33: "share" is not a share/, /"share" is not a share/],
  ],
  ["shares: [{ owner: a, share: 0.0 }, { owner: b, share: 1 }]", [/"share" is not a share/]],
  ["shares: [{ owner: a, share: 0.5 }, { owner: a, share: 0.5 }]", [/has two shares: add them up$/]],
  ["project: p", [/^line 2, column 5: nobody pays: give "owner", "shares" or "owner_from_tag"$/]],
  ["{ owner: a, owner_from_tag: t }", [/: give one of "owner" and "owner_from_tag"$/]],
  ["{ user: u, owner: a }", [/^line 2, column 13: traces are divided by project, so a rule about one user/]],
  [
    "{ owner: a, from: 2026-11-01, to: 2026-10-01 }",
    [/^line 2, column 39: 2026-10-01 is not after 2026-11-01/],
  ],
  ['{ owner: "a\\u0007b" }', [/"owner" has a control character$/]],
])("a rule is refused by line and column: %s", (rule, expected) => {
  const problems = problemsOf(`rules:\n  - ${rule}\n`);
  expect(problems).toEqual(expected.map((one) => expect.stringMatching(one)));
});

const OF_ALL = { source: "default", of: null, currency: null, amount: "400", warnAt: [50, 75, 90, 100] };
test("budgets of a file", () => {
  const { budgets } = parse(`rules: []
budgets:
  - { owner: search, amount: 2500.5, currency: USD, warn_at: [100, 80, 80] }
  - { source: default, traces: 400 }
  - { source: default, per: billing_period, traces: 400 }
`);
  expect(budgets).toEqual([
    {
      line: 3,
      source: null,
      of: { kind: "owner", id: "search" },
      currency: "USD",
      amount: "2500.5",
      per: "month",
      warnAt: [80, 100],
    },
    { ...OF_ALL, line: 4, per: "month" },
    { ...OF_ALL, line: 5, per: "billing_period" },
  ]);
});

test.each([
  ["of two things", "{ owner: a, project: p, traces: 5 }", /"owner" and "project"$/],
  ["in traces and money", "{ traces: 5, currency: USD }", /is in traces or in money/],
  ["without a currency", "{ amount: 5 }", /give "amount" and "currency" together$/],
  ["of zero", "{ traces: 0 }", /"traces" is not a whole number/],
  ["of eleven digits", "{ amount: 0.00000000001, currency: USD }", /"amount" is not an amount/],
  ["with a mark of 0", "{ traces: 5, warn_at: [0] }", /is not a whole number of per cents/],
  [
    "of a billing period of no source",
    "{ traces: 5, per: billing_period }",
    /^line 3, column 23: a billing period is that of one source: name it with "source"$/,
  ],
])("a budget %s is refused", (_, budget, expected) => {
  const problems = problemsOf(`rules: []\nbudgets:\n  - ${budget}`);
  expect(problems).toEqual([expect.stringMatching(expected)]);
});

test("routes of a file", () => {
  const { routes } = parse(`rules: []
routes:
  - { name: all, type: webhook, secret: USAGE_ROUTE_ALL }
  - name: search-team
    type: email
    secret: USAGE_ROUTE_SMTP
    from: usage@example.com
    to: [search@example.com]
    owners: [search, (unallocated)]
    kinds: [budget, unusual]
    severities: [critical, warning]
`);
  const none = { sender: null, recipients: [], owners: null, kinds: null, severities: null };
  expect(routes).toEqual([
    { ...none, line: 3, name: "all", type: "webhook", setting: "USAGE_ROUTE_ALL" },
    {
      line: 4,
      name: "search-team",
      type: "email",
      setting: "USAGE_ROUTE_SMTP",
      sender: "usage@example.com",
      recipients: ["search@example.com"],
      owners: ["search", "(unallocated)"],
      kinds: ["budget", "unusual"],
      severities: ["critical", "warning"],
    },
  ]);
});

test.each([
  [
    "type: slack, secret: https://hooks.example/sesame",
    /^line 3, column 37: "secret" is not the name of a setting such as USAGE_ROUTE_SEARCH. [^/]+$/,
  ],
  ["type: slack, secret: USAGE_API_KEY", /"secret" is not the name of a setting/],
  ["type: email, secret: USAGE_ROUTE_A, from: a@b.example", /^line 3, column 5: .* type email needs "to"$/],
  [
    'type: email, secret: USAGE_ROUTE_A, from: a@b.example, to: ["a@b.example, c@d.example"]',
    /"to" is not an e-mail address$/,
  ],
  ["type: slack, secret: USAGE_ROUTE_A, kinds: [budgets]", /"kinds" is not one of difference, /],
])("a route is refused: %s", (route, expected) => {
  const problems = problemsOf(`rules: []\nroutes:\n  - { name: a, ${route} }`);
  expect(problems).toEqual([expect.stringMatching(expected)]);
});

test.each([
  [{ dimension: "project" as const, id: "p 1", tags: [] }, { of: { dimension: "project", id: "p 1" } }],
  [
    { dimension: "project" as const, id: "\\(none)", tags: [] },
    { of: { dimension: "project", id: "(none)" } },
  ],
  [
    { dimension: "project" as const, id: "\\\\(none)", tags: [] },
    { of: { dimension: "project", id: "\\(none)" } },
  ],
  [
    { dimension: "user" as const, id: "u", tags: [] },
    { workspace: "w", of: { dimension: "user", id: "u" } },
  ],
  [
    { dimension: null, id: "(none)", tags: [] },
    { workspace: "w", of: null },
  ],
  [
    { dimension: "project" as const, id: "p", tags: [{ key: "a=b: c", value: ' "d" ' }] },
    { tag: { key: "a=b: c", value: ' "d" ' } },
  ],
])("a suggested rule says what it is about: %j", (part, expected) => {
  const rule = ruleFor({ workspaceId: "w", ...part });
  const { rules } = parse(
    `divide_by: ${part.dimension === "user" ? "user" : "project"}\nrules:\n  - ${rule}`,
  );
  expect(rules).toMatchObject([{ ...expected, shares: [{ owner: "TEAM" }] }]);
});

test("a file that is nested too deep is refused as such", () => {
  expect(problemsOf(`rules: ${"[".repeat(30_000)}${"]".repeat(30_000)}`)[0]).toContain("nested too deep");
});

test("a file that expands itself is refused", () => {
  const bomb = ["a: &a [x, x, x, x, x, x, x, x, x, x]"];
  for (const [one, next] of ["ab", "bc", "cd", "de", "ef", "fg"].map((pair) => [...pair])) {
    bomb.push(`${next}: &${next} [${Array(10).fill(`*${one}`).join(", ")}]`);
  }
  expect(problemsOf(`${bomb.join("\n")}\nrules: *g`).length).toBeGreaterThan(0);
});

test("a CSV file has a row for each rule, share and budget, and is known by its lines", () => {
  const csv = parseOwners(
    "owners.CSV",
    "\ufeffdivide_by,user,owner,share,traces,warn_at\nuser,1,a,0.6,,\n,1,b,0.4,,\n\n,007,b,,,\n,,a,,2500,80;100\n",
  );
  expect(csv).toMatchObject({
    divideBy: "user",
    rules: [
      { line: 2, of: { dimension: "user", id: "1" }, shares: [{ share: 6000 }, { owner: "b", share: 4000 }] },
      { line: 5, of: { id: "007" } },
    ],
    budgets: [{ line: 6, of: { kind: "owner", id: "a" }, warnAt: [80, 100] }],
  });
});

test.each([
  ["projekt,owner\n", /^line 1: there is no column "projekt"; did you mean project\?$/],
  ["project,owner\np\n", /^line 2: nobody pays/],
  ["project,owner\np,a,b\n", /^line 2: cell 3 \("b"\) has no column/],
  ["owner,to\na,\nb,2026-13-01\n", /^line 3, column "to": "to" is not a day/],
  [
    "project,owner,share\np,a,0.4\np,b,0.5\nq,c,1\n",
    /^line 2, column "share": the shares add up to 0.9, not to 1$/,
  ],
  ["divide_by,user,owner\nuser,u,a\nproject,u,a\n", /^line 3, column "divide_by": line 2 has another one$/],
  ["traces,owner\n250.000,a\n", /^line 2, column "traces": "traces" is not a whole number of traces/],
  ["traces,warn_at\n5,80;x\n", /^line 2, column "warn_at": .* is not a whole number of per cents/],
  ['owner\n"a\n', /^line \d: Quote Not Closed/],
])("a CSV file is refused by line and column: %j", (content, expected) => {
  expect(() => parseOwners("owners.csv", content)).toThrow(
    expect.objectContaining({
      code: "file_invalid",
      message: expect.stringMatching(new RegExp(`^owners.csv was refused:\\n  ${expected.source.slice(1)}`)),
    }),
  );
});
