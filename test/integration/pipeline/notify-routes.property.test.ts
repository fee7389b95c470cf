import type { RootOperationNode } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/core/base/secret.ts";
import type { Database, Store } from "../../../src/core/store/db/database.ts";
import type { Condition } from "../../../src/features/alerts/conditions.ts";
import { notifyRoutes } from "../../../src/features/alerts/send-alerts.ts";
import { type AlertKind, type Route, SEVERITIES } from "../../../src/features/owners/alert-route.ts";
import { listRoutes, replaceRoutes } from "../../../src/features/owners/alert-routes.store.ts";
import { dice } from "../../../src/features/standin/engine/random.ts";
import { seed, times } from "../../support/drawn.ts";
import { type Manner, openReceivers } from "../../support/receivers.ts";
import { setupStore } from "../store/setup.ts";

/**
 * Whatever dies, runs twice or does not respond: every incident reaches every route that takes it, every beginning has its end, and no
 * message reaches a receiver that responded twice, unless the process died before it could store the response. A route that fails is sent
 * nothing before its wait is over.
 */

const SEED = seed();
const STEPS = times(480);
const TRIES = 3;
/** After this many steps all receivers behave well for a while, and every message so far is checked. */
const CALM_EVERY = 40;

const route = (given: Pick<Route, "name" | "type"> & Partial<Route>): Route => ({
  line: 1,
  setting: `USAGE_ROUTE_${given.type.toUpperCase()}`,
  sender: null,
  recipients: [],
  owners: null,
  kinds: null,
  severities: null,
  ...given,
});
const ROUTES = [
  route({ name: "all", type: "webhook" }),
  route({ name: "search", type: "slack", owners: ["search"] }),
  route({ name: "oncall", type: "pagerduty", severities: ["critical"] }),
  route({
    name: "finance",
    type: "email",
    kinds: ["budget", "difference"],
    sender: "usage@example.com",
    recipients: ["finance@example.com"],
  }),
];
const TAKES: Readonly<Record<string, (incident: Condition) => boolean>> = {
  all: () => true,
  search: ({ owner }) => owner === "search",
  oncall: ({ severity }) => severity === "critical",
  finance: ({ kind }) => kind === "budget" || kind === "difference",
};
const NAME_OF: Readonly<Record<string, string>> = {
  "/webhook": "all",
  "/slack": "search",
  "/pagerduty": "oncall",
  mail: "finance",
};
const KEYS: readonly [AlertKind, string | null][] = [
  ["difference", null],
  ["stale", null],
  ["usage_limit", null],
  ["budget", null],
  ["budget", "search"],
  ["budget", "ads"],
  ["unusual", "search"],
];
const MANNERS: readonly Manner[] = ["well", "well", "refuses", "redirects", "lies", "cuts"];

interface Heard {
  readonly route: string;
  readonly key: string;
  readonly news: number | null;
  readonly step: number;
  readonly hasResponse: boolean;
}

test(`every incident arrives, and at most once at a receiver that responded (SEED=${SEED})`, async () => {
  const { next: random, pick } = dice(SEED);
  const { store, reader } = await setupStore();
  await reader.query(
    "INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest) VALUES ('default', 'http://platform.test', '2026-01-05', 24, '')",
  );
  await replaceRoutes(store.db, ROUTES);
  const routes = await listRoutes(store.db);
  const manners = new Map<string, Manner>(ROUTES.map(({ name }) => [name, "well"]));
  const heard: Heard[] = [];
  /** Messages that failed since the last one that was taken, or since a wait was over. */
  const failed = new Map<string, number>();
  let step = 0;
  const receivers = await openReceivers(({ path, body }) => {
    const name = NAME_OF[path] as string;
    const manner = manners.get(name) as Manner;
    const hasResponse = manner === "well" || (manner === "lies" && path === "/webhook");
    failed.set(name, hasResponse ? 0 : (failed.get(name) ?? 0) + 1);
    if (hasResponse || manner === "cuts")
      heard.push(...newsIn(body).map((news) => ({ ...news, route: name, step, hasResponse })));
    return manner;
  });
  onTestFinished(receivers.close);
  const settings = {
    slug: "default",
    withinMs: 60_000,
    clock: { wait: async () => {} },
    secrets: new Map(
      [
        ["WEBHOOK", `${receivers.webUrl}/webhook`],
        ["SLACK", `${receivers.webUrl}/slack`],
        ["PAGERDUTY", `${receivers.webUrl.replace("//", "//0123456789abcdef@")}/pagerduty`],
        ["EMAIL", `smtp://127.0.0.1:${receivers.smtpPort}`],
      ].map(([name, value = ""]) => [`USAGE_ROUTE_${name}`, new Secret(value)]),
    ),
  };

  const incidents = KEYS.map(([kind, owner]) =>
    conditionOf({ kind, owner, isFiring: false, newest: 0, severity: "warning" }),
  );
  let news = 0;
  const all = new Map<number, Condition>();
  const change = () => {
    const at = Math.floor(random() * incidents.length);
    const { kind, owner, isFiring } = incidents[at] as Condition;
    const severity = pick(SEVERITIES);
    incidents[at] = conditionOf({
      kind,
      owner,
      isFiring: !isFiring || random() < 0.4,
      newest: ++news,
      severity,
    });
    all.set(news, incidents[at] as Condition);
  };
  const read = async () => {
    const { rows } = await reader.query<{ now: string }>("SELECT clock_timestamp()::text AS now");
    return { conditions: [...incidents], readAt: rows[0]?.now ?? "" };
  };
  const violent = new Set<number>();
  /** A job that has read these conditions. `survives`: statements until its process dies. */
  const pass = async (
    seen: Awaited<ReturnType<typeof read>>,
    survives = Number.POSITIVE_INFINITY,
    signal?: AbortSignal,
  ) => {
    const mortal =
      survives === Number.POSITIVE_INFINITY ? store : dyingAfter(store, survives, () => violent.add(step));
    return notifyRoutes({ store: mortal, sourceId: 1 }, { ...seen, routes }, { ...settings, signal });
  };

  let seen = await read();
  for (step = 1; step <= STEPS; step++) {
    for (let n = Math.floor(random() * 3); n > 0; n--) change();
    if (random() < 0.3) manners.set(pick(ROUTES).name, pick(MANNERS));
    // A minute passes, so that the claims of dead processes have run out.
    if (random() < 0.2)
      await reader.query("UPDATE usage.route_state SET claimed_until = now() WHERE claim IS NOT NULL");
    if (random() < 0.2) await passWait(pick(ROUTES).name);
    const old = seen;
    seen = await read();
    const job = async () => {
      const from = random() < 0.3 ? old : seen;
      const fate = random();
      if (fate < 0.7) return pass(from);
      if (fate < 0.9) return pass(from, Math.floor(random() * 26));
      violent.add(step);
      const end = new AbortController();
      setTimeout(() => end.abort(), random() * 10);
      return pass(from, undefined, end.signal);
    };
    const isDone = async (work: Promise<unknown>) => {
      await work.catch((error) => {
        // Another route may have failed in the same pass: then one error names both.
        if (!(error instanceof Death)) expect(error).toMatchObject({ code: "route_failed" });
      });
    };
    const jobs = 1 + Math.floor(random() * 3);
    if (random() < 0.5) await Promise.all(Array.from({ length: jobs }, () => isDone(job())));
    else for (let n = 0; n < jobs; n++) await isDone(job());
    // Real time must not end a wait.
    await reader.query("UPDATE usage.route_state SET next_try_at = 'infinity' WHERE next_try_at IS NOT NULL");
    // A process that died has stored no failure, and a receiver may read its message a step later.
    if (violent.has(step) || violent.has(step - 1)) failed.clear();
    for (const [name, times] of failed)
      expect(times, `messages to ${name} that failed by step ${step}`).toBeLessThanOrEqual(TRIES);
    if (step % CALM_EVERY !== 0) continue;
    await calm();
    expectNothingTwice(heard, violent);
  }

  async function passWait(name: string) {
    await reader.query(
      "UPDATE usage.route_state SET next_try_at = now() WHERE next_try_at > now() AND route = $1",
      [name],
    );
    failed.delete(name);
  }

  async function calm() {
    for (const { name } of ROUTES) {
      manners.set(name, "well");
      await passWait(name);
    }
    await reader.query("UPDATE usage.route_state SET claimed_until = now() WHERE claim IS NOT NULL");
    await pass(await read());
    expect(await pass(await read())).toEqual({ notified: 0, ended: 0 });
    const isFor = (name: string, incident: Condition) => TAKES[name]?.(incident) === true;
    const wrong = heard.filter(
      ({ route, news }) => news !== null && !isFor(route, all.get(news) as Condition),
    );
    expect(wrong).toEqual([]);
    for (const one of ROUTES) {
      for (const incident of incidents) {
        const key = keyOf(incident);
        const last = heard.findLast((each) => each.route === one.name && each.key === key);
        if (incident.isFiring && isFor(one.name, incident))
          expect(last, `${one.name} of ${key} in step ${step}`).toMatchObject({ news: incident.newest });
        else if (!incident.isFiring)
          expect(last?.news ?? null, `${one.name} of ${key}, over in step ${step}`).toBeNull();
      }
    }
  }
});

function expectNothingTwice(heard: readonly Heard[], violent: ReadonlySet<number>): void {
  for (const [of, all] of Map.groupBy(heard, ({ route, key }) => `${route}: ${key}`)) {
    const sentIn = new Map<number | null, number>();
    let [hasBegun, lastEnd] = [false, 0];
    for (const { news, step, hasResponse } of all) {
      // A process that was ended does not know whether its beginning arrived, so the end is sent all the same.
      if (news === null && !hasBegun && ![...violent].some((one) => one >= lastEnd - 1 && one <= step))
        expect.fail(`${of} was sent an end without a beginning in step ${step}`);
      if (news === null && hasResponse) lastEnd = step;
      hasBegun = news !== null || (hasBegun && !hasResponse);
      const before = sentIn.get(news);
      const until = news === null ? step : before;
      // What was sent before the end of a process may be read in the step after it.
      if (before !== undefined && ![...violent].some((one) => one >= before - 1 && one <= Number(until)))
        expect.fail(`${of} was sent twice: ${news ?? "the end"}, in steps ${before} and ${step}`);
      if (hasResponse) sentIn.set(news, step);
      if (news !== null) sentIn.delete(null);
    }
    const news = all.flatMap((one) => (one.news === null ? [] : [one.news]));
    expect(news, `${of} was sent older news after newer`).toEqual([...news].sort((a, b) => a - b));
  }
}

function keyOf({ kind, owner }: Pick<Condition, "kind" | "owner">): string {
  return `${kind} of ${owner ?? "nobody"}`;
}

function conditionOf(
  given: Pick<Condition, "kind" | "owner" | "isFiring" | "newest" | "severity">,
): Condition {
  return {
    ...given,
    count: 1,
    message: `(${keyOf(given)}) has news ${given.newest}.`,
    over: `(${keyOf(given)}) is over`,
  };
}

function newsIn(body: string): { key: string; news: number | null }[] {
  const [event] = body.match(/"event_action":"resolve"/) ?? [];
  if (event !== undefined)
    return [{ key: KEY_OF_INCIDENT.get(JSON.parse(body).dedup_key) ?? "", news: null }];
  const unfolded = body.replace(/=\n/g, "").replace(/,"alerts":.*/s, "");
  const found = [...unfolded.matchAll(/\((\w+ of \w+)\) (?:has news (\d+)|is over)/g)].map(
    ([, key = "", news]) => {
      return { key, news: news === undefined ? null : Number(news) };
    },
  );
  if (body.includes('"dedup_key"')) {
    for (const { key } of found) KEY_OF_INCIDENT.set(JSON.parse(body).dedup_key, key);
  }
  return found;
}

const KEY_OF_INCIDENT = new Map<string, string>();

class Death extends Error {}

/** A store whose process dies after so many statements: none of the later ones arrives. */
function dyingAfter(store: Store, statements: number, onDeath: () => void): Store {
  let left = statements;
  const plugin = {
    transformQuery: ({ node }: { node: RootOperationNode }) => {
      if (left-- > 0) return node;
      onDeath();
      throw new Death("killed");
    },
    transformResult: async <T>({ result }: { result: T }) => result,
  };
  return { ...store, db: store.db.withPlugin(plugin) as Database };
}
