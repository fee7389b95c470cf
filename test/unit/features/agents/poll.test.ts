import { expect, test } from "vitest";
import { systemClock } from "../../../../src/core/base/clock.ts";
import { PlatformError } from "../../../../src/core/base/errors.ts";
import { pollUntil } from "../../../../src/features/agents/poll.ts";
import { poll } from "../../../support/poll.ts";
import { rejection } from "../../core/platform/http/raw-server.ts";
import { handClock } from "./clients.ts";

test("polling honours Retry-After and reports the last failure", async () => {
  const clock = handClock();
  const failing = new PlatformError({
    code: "rate_limited",
    message: "too many",
    next: "",
    retryable: true,
    method: "GET",
    url: "",
    retryAfterMs: 7_000,
  });
  let looks = 0;
  const error = await rejection(
    pollUntil("It", { withinMs: 20_000, clock }, async () => {
      looks++;
      throw failing;
    }),
  );
  expect([looks, clock.now()]).toEqual([4, 20_000]);
  expect(error).toMatchObject({ message: expect.stringContaining("too many") });
  await expect(
    pollUntil("It", { withinMs: 1000, clock: systemClock }, async () => Promise.reject(new Error("bug"))),
  ).rejects.toThrow("bug");
  expect(await poll(() => pollUntil("It", { withinMs: 1000, clock: systemClock }, async () => 5))).toBe(5);
});
