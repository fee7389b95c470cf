import { expect, test } from "vitest";
import { setupPages } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

test("pages are open on this machine, with a policy that runs no foreign script, and unknown ones lead on", async () => {
  const pages = await setupPages(await setup());
  const page = await pages.get("/");
  expect(page.status).toBe(200);
  expect(page.headers["content-security-policy"]).toBe(
    "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src 'self';form-action 'self';base-uri 'none';frame-ancestors 'none'",
  );
  expect(page.headers["cache-control"]).toBe("no-store");
  const unknown = await pages.get("/nowhere?x=<script>");
  expect(unknown.status).toBe(404);
  expect(unknown.text).toContain('<a href="/">');
  expect((await pages.get("/assets/style.css")).status).toBe(200);
  expect((await pages.get("/", { host: "evil.example" })).status).toBe(403);
});

test("with tokens a person logs in, and what they may do follows from the token", async () => {
  const environment = { USAGE_WEB_TOKEN: "operators-token-1", USAGE_WEB_READ_TOKEN: "viewers-token-123" };
  const pages = await setupPages(await setup(), { environment });
  const before = await pages.get("/");
  expect([before.status, before.headers.location]).toEqual([303, "/login?next=%2F"]);
  const wrong = await pages.post("/login", { token: "operators-token-2", next: "/" });
  expect(wrong.status).toBe(401);
  const right = await pages.post("/login", { token: "viewers-token-123", next: "/\\evil.example" });
  expect([right.status, right.headers.location]).toEqual([303, "/"]);
  expect((await pages.get("/")).text).toContain("You may look");
});

test("the overview says what is trusted, and what to do now with the command for it", async () => {
  const bench = await setup();
  const pages = await setupPages(bench);
  expect((await pages.get("/")).text).toMatch(
    /is not contacted yet, so nothing of it is loaded\. Its first sync/,
  );
  await bench.sync();
  const loaded = await pages.get("/");
  expect(loaded.text).toMatch(/Final until \S+, nothing of it is proved yet/);
  await bench.reconcile();
  expect((await pages.get("/")).text).toMatch(/Final and proved until \d{4}-\d\d-\d\d/);
  await bench.sql(`
    DELETE FROM usage.coverage
    WHERE scope_id = (SELECT min(scope_id) FROM usage.trace_scope WHERE stride = 'day') AND period_start = (SELECT min(period_start) FROM usage.coverage)`);
  const gap = await pages.get("/");
  const [, command = ""] = /<code>([^<]*backfill --from [^<]*)<\/code>/.exec(gap.text) ?? [];
  expect(command).toContain(`--from ${new Date(bench.dataStart).toISOString().slice(0, 10)}`);
});
