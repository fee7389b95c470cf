import type { Fault } from "../world/fault.ts";
import { PLATFORM_FAULTS } from "./platform.ts";
import { POSTGRES_FAULTS } from "./postgres.ts";
import { RECEIVER_FAULTS } from "./receiver.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { TOGETHER } from "./together.ts";
import { WORKER_FAULTS } from "./workers.ts";

export const FAULTS: readonly Fault[] = [
  ...WORKER_FAULTS,
  ...REDIS_FAULTS,
  ...POSTGRES_FAULTS,
  ...PLATFORM_FAULTS,
  ...RECEIVER_FAULTS,
  ...TOGETHER,
];
