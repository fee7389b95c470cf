import { expect, test } from "vitest";
import { digestOfClose } from "../../../../src/features/close/close-digest.store.ts";

type Close = Parameters<typeof digestOfClose>[0];

const workspace = (entityId: number) => ({ entityId, workspaceId: `w${entityId}`, access: "read" as const });
const USD = { currency: "USD", cost: "1.5" };
const EUR = { currency: "EUR", cost: "0.1" };
const KEPT = { totals: "t", findings: "f", costs: [USD] };
const CLOSE: Close = { required: [workspace(2), workspace(11)], without: ["b", "a"], kept: KEPT };

test("two closes about the same have one digest, in whatever order they are named", () => {
  expect(digestOfClose(CLOSE)).toMatch(/^[0-9a-f]{64}$/);
  expect(digestOfClose({ ...CLOSE, required: CLOSE.required.toReversed(), without: ["a", "b"] })).toBe(
    digestOfClose(CLOSE),
  );
});

test("a close about anything else has another digest", () => {
  const others: Close[] = [
    CLOSE,
    { ...CLOSE, required: [workspace(2)] },
    { ...CLOSE, required: [workspace(2), workspace(3)] },
    { ...CLOSE, without: [] },
    { ...CLOSE, without: ["a", "c"] },
    { ...CLOSE, kept: { ...KEPT, totals: "u" } },
    { ...CLOSE, kept: { ...KEPT, findings: "g" } },
    { ...CLOSE, kept: { ...KEPT, costs: [] } },
    { ...CLOSE, kept: { ...KEPT, costs: [USD, EUR] } },
    { ...CLOSE, kept: { ...KEPT, costs: [{ ...USD, cost: "1.6" }] } },
    { ...CLOSE, kept: { ...KEPT, costs: [{ ...USD, currency: "EUR" }] } },
  ];
  expect(new Set(others.map(digestOfClose)).size).toBe(others.length);
});
