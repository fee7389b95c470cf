import { expect, test } from "vitest";
import { systemClock } from "../../../../src/clock.ts";
import { PlatformError } from "../../../../src/errors.ts";
import { pollUntil } from "../../../../src/platform/http/poll.ts";
import { poll } from "../../../support/poll.ts";
import { handClock } from "../agents/clients.ts";
import { rejection } from "./raw-server.ts";

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
