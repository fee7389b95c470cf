import { type Fault, faultOn } from "../world/fault.ts";
import { PLATFORM_FAULTS } from "./platform.ts";
import { POSTGRES_FAULTS } from "./postgres.ts";
import { RECEIVER_FAULTS } from "./receiver.ts";
import { REDIS_FAULTS } from "./redis.ts";
import { TOGETHER } from "./together.ts";
import { WORKER_FAULTS } from "./workers.ts";

export const FAULTS: readonly Fault[] = [
  ...WORKER_FAULTS.map((one) => faultOn("workers", one)),
  ...REDIS_FAULTS.map((one) => faultOn("redis", one)),
  ...POSTGRES_FAULTS.map((one) => faultOn("postgres", one)),
  ...PLATFORM_FAULTS.map((one) => faultOn("platform", one)),
  ...RECEIVER_FAULTS.map((one) => faultOn("receiver", one)),
  ...TOGETHER.map((one) => faultOn("together", one)),
];
