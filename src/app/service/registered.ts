import type { FeatureJob } from "../../../jobs/job.ts";
import { type Schedule, schedulesOf } from "../../../jobs/schedule.ts";
import type { Config } from "../../core/base/config.ts";
import type { AddEndpoints, FeatureChecks } from "../../features/feature.ts";
import { FEATURES } from "../../features.ts";
import type { Web } from "../../web/routes.ts";

export async function featureJobs(config: Config, slug: string): Promise<FeatureJob[]> {
  const jobs = FEATURES.map(async ({ jobs }) => (jobs === undefined ? [] : (await jobs())(config, slug)));
  return (await Promise.all(jobs)).flat();
}

export async function schedulesOfSource(config: Config, slug: string): Promise<Schedule[]> {
  return schedulesOf(config, await featureJobs(config, slug));
}

export async function featureChecks(): Promise<FeatureChecks[]> {
  return Promise.all(FEATURES.flatMap(({ checks }) => (checks === undefined ? [] : [checks()])));
}

export async function featureEndpoints(): Promise<AddEndpoints[]> {
  return Promise.all(FEATURES.flatMap(({ endpoints }) => (endpoints === undefined ? [] : [endpoints()])));
}

export async function featurePages(): Promise<((web: Web) => void)[]> {
  return Promise.all(FEATURES.flatMap(({ pages }) => (pages === undefined ? [] : [pages()])));
}
