import { expect, test } from "vitest";
import { createFetchProgress } from "../../../../src/app/service/start-source.ts";
import { liveness, processState } from "../../../../src/web/health.ts";

const MINUTE_MS = 60_000;

function setup() {
  let now = 0;
  const clock = { now: () => now };
  const progress = createFetchProgress(clock);
  const state = { ...processState(0), takesJobs: true, fetching: new Map([["default", progress]]) };
  return {
    progress,
    pass: (minutes: number) => {
      now += minutes * MINUTE_MS;
    },
    isFetching: (draining = false) => liveness({ ...state, lastJobAt: now, draining }, now).checks.fetching,
  };
}

const STUCK = expect.stringContaining("no fetch task of default was taken or ended for 20 min");

test("fetching that stands still is not alive: tasks that never end, or messages that nobody takes", () => {
  const { progress, pass, isFetching } = setup();
  const end = progress.begin();
  pass(19);
  expect(isFetching()).toBe("ok");
  pass(2);
  expect(isFetching()).toEqual(STUCK);
  expect(isFetching(true)).toBe("ok");
  end();
  expect(isFetching()).toBe("ok");

  progress.noteWaiting(true);
  pass(21);
  progress.noteWaiting(true);
  expect(isFetching()).toEqual(STUCK);
});

test("fetching with nothing due is alive, and so is a process that does not fetch", () => {
  const { progress, pass, isFetching } = setup();
  progress.begin()();
  pass(600);
  expect(isFetching()).toBe("ok");
  progress.noteWaiting(true);
  expect(isFetching()).toBe("ok");
  pass(21);
  progress.noteWaiting(false);
  expect(isFetching()).toBe("ok");
  expect(liveness(processState(0), 1e9).checks).toMatchObject({ jobs: "ok", fetching: "ok" });
});

test("a platform that is down, refuses the key or limits requests keeps fetching alive: each attempt ends", () => {
  const { progress, pass, isFetching } = setup();
  for (let attempt = 0; attempt < 50; attempt++) {
    progress.noteWaiting(true);
    const end = progress.begin();
    pass(3);
    end();
    expect(isFetching()).toBe("ok");
  }
});
