import fc from "fast-check";
import { expect, test } from "vitest";
import type { Kind, Parts } from "../../../../src/core/domain/coverage/coverage-grid.ts";
import { normalize } from "../../../../src/core/domain/time/intervals.ts";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import type { Interval } from "../../../../src/core/domain/time/window.ts";
import { calendar } from "../../../../src/features/coverage/coverage-calendar.ts";
import type { CoverageCell, SourceCoverage } from "../../../../src/features/coverage/coverage-cells.store.ts";
import { seed, times } from "../../../support/drawn.ts";

const SEED = seed();
const KINDS: readonly Kind[] = ["not_available", "failed", "missing", "unverified", "provisional", "final"];
const GAPS: Partial<Record<Kind, string>> = { failed: "missing", unverified: "missing" };
const SPAN = { start: Date.UTC(2026, 3, 1), end: Date.UTC(2026, 5, 1) };
const FIRST = Date.UTC(2026, 3, 28);
const DAYS = 6;
const NOW = FIRST + (DAYS - 1) * DAY_MS + 90 * 60_000;

const unit = fc.record({
  kind: fc.constantFrom("none" as const, ...KINDS),
  hasTraces: fc.boolean(),
  proof: fc.constantFrom("none" as const, "export" as const, "export" as const, "total" as const),
});
type Unit = typeof unit extends fc.Arbitrary<infer T> ? T : never;

const drawn = fc.constantFrom("day" as const, "hour" as const).chain((stride) =>
  fc.record({
    stride: fc.constant(stride),
    cells: fc.array(
      fc.record({
        access: fc.constantFrom("read" as const, "read" as const, "unlisted" as const),
        units: fc.array(unit, { minLength: DAYS * (stride === "day" ? 1 : 24), maxLength: DAYS * 24 }),
      }),
      { minLength: 1, maxLength: 4 },
    ),
  }),
);

type Drawn = typeof drawn extends fc.Arbitrary<infer T> ? T : never;

function partsOf(units: readonly Unit[], unitMs: number): Parts {
  const where = (is: (one: Unit) => boolean): Interval[] =>
    normalize(
      units.flatMap((one, n) =>
        is(one) ? { start: FIRST + n * unitMs, end: FIRST + (n + 1) * unitMs } : [],
      ),
    );
  const kinds = Object.fromEntries(KINDS.map((kind) => [kind, where((one) => one.kind === kind)]));
  const traced = where(({ hasTraces }) => hasTraces);
  const reconciled = where(({ kind, proof }) => kind === "final" && proof === "export");
  const matched = where(({ kind, proof }) => kind === "final" && proof === "total");
  return { ...(kinds as Record<Kind, Interval[]>), reconciled, matched, loaded: [], traced };
}

const none = partsOf([], DAY_MS);

async function shownBy(
  coverage: SourceCoverage,
): Promise<Map<string, { class: string; text: string; to: string }>> {
  const { cells } = coverage;
  const page = String(await calendar({ coverage, cells, target: { source: "s" } }, SPAN));
  const days = page.matchAll(/<td class="status (\w+)"><a href="([^"]*)" title="([\d-]+): ([^"]*)">/g);
  return new Map(
    [...days].map(([, name = "", to = "", day = "", text = ""]) => [day, { class: name, text, to }]),
  );
}

test(`each day says what a slow count of all cells says, and the worst of it (seed ${SEED})`, async () => {
  const about = async ({ stride, cells }: Drawn) => {
    const unitMs = stride === "day" ? DAY_MS : HOUR_MS;
    const perDay = DAY_MS / unitMs;
    const given = cells.map(({ access, units }, n) => ({ access, n, units: units.slice(0, DAYS * perDay) }));
    const shown = await shownBy({
      source: "s",
      stride,
      dataStart: FIRST,
      now: NOW,
      isUnavailable: false,
      cells: given.map(({ access, n, units }): CoverageCell => {
        const parts = partsOf(units, unitMs);
        return {
          workspaceId: String(n),
          workspaceName: null,
          access,
          groupBy: "workspace",
          scopeId: n,
          hourScopeId: null,
          daysOfHours: [],
          differs: [],
          ...(stride === "day" ? { days: parts, hours: undefined } : { days: none, hours: parts }),
        };
      }),
    });
    const read = given.filter(({ access }) => access === "read");
    const counted = read.length > 0 ? read : given;
    const figures =
      counted.length === 1 ? `${stride}s` : { day: "daily figures", hour: "hourly figures" }[stride];
    const expected = new Map<string, { class: string; text: string; hasGap: boolean }>();
    for (let day = 0; day < DAYS; day++) {
      const units = counted.flatMap(({ units }) =>
        Array.from(
          { length: perDay },
          (_, n) => [units[day * perDay + n], FIRST + (day * perDay + n) * unitMs] as const,
        ),
      );
      const all = units.flatMap(([one, at]) =>
        one === undefined || one.kind === "none" || (one.kind === "missing" && at + unitMs > NOW) ? [] : one,
      );
      const kinds = KINDS.filter((kind) => all.some((one) => one.kind === kind));
      const [worst] = kinds;
      if (worst === undefined) continue;
      const isEmpty = worst === "final" && all.every(({ hasTraces }) => !hasTraces);
      const words = kinds.map((kind) => {
        const count = all.filter((one) => one.kind === kind).length;
        const word = kind === "final" && isEmpty ? "empty" : kind.replace("_", " ");
        return count === all.length ? word : `${word} ${count} of ${all.length} ${figures}`;
      });
      const provedBy = (how: Unit["proof"]) =>
        all.filter(({ kind, proof }) => kind === "final" && proof === how).length;
      const proved = provedBy("export") + provedBy("total");
      const isUnproved = worst === "final" && proved < all.length;
      const marks = [
        ["reconciled", provedBy("export")] as const,
        ["matched by totals", provedBy("total")] as const,
      ].flatMap(([word, count]) =>
        count === 0 ? [] : count === all.length ? [word] : [`${word} ${count} of ${all.length}`],
      );
      const some = proved === 0 ? "not proved" : `${proved} of ${all.length} ${figures} proved`;
      const text = [...words, ...(isUnproved ? [some] : marks)].join(", ");
      expected.set(new Date(FIRST + day * DAY_MS).toISOString().slice(0, 10), {
        class: isUnproved ? "final" : worst === "final" ? "proved" : (GAPS[worst] ?? worst),
        text,
        hasGap: kinds.some((kind) => ["failed", "missing", "unverified"].includes(kind)),
      });
    }
    expect(
      new Map([...shown].sort().map(([day, { class: name, text }]) => [day, { class: name, text }])),
    ).toEqual(new Map([...expected].map(([day, { class: name, text }]) => [day, { class: name, text }])));
    for (const [day, { class: name, to }] of shown) {
      const { hasGap } = expected.get(day) ?? { hasGap: false };
      // One click from a day to its reason.
      expect(to.startsWith("/cell?"), day).toBe(hasGap);
      if (hasGap) expect(["not_available", "missing"]).toContain(name);
    }
  };
  await fc.assert(fc.asyncProperty(drawn, about), { seed: SEED, numRuns: times(300) });
});
