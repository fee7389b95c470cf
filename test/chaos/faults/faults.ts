import type { Fault, FaultOf } from "../world/fault.ts";
import { PLATFORM_FAULTS } from "./platform.ts";
import { POSTGRES_FAULTS } from "./postgres.ts";
import { RECEIVER_FAULTS } from "./receiver.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { TOGETHER } from "./together.ts";
import { WORKER_FAULTS } from "./workers.ts";

const strike = (on: Fault["on"], faults: readonly FaultOf[]): Fault[] =>
  faults.map((fault) => ({ ...fault, on }));

export const FAULTS: readonly Fault[] = [
  ...strike("workers", WORKER_FAULTS),
  ...strike("redis", REDIS_FAULTS),
  ...strike("postgres", POSTGRES_FAULTS),
  ...strike("platform", PLATFORM_FAULTS),
  ...strike("receiver", RECEIVER_FAULTS),
  ...strike("together", TOGETHER),
];
