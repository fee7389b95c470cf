import { dice } from "../../src/local/standin/engine/random.ts";

/**
 * Stryker runs `MUTATE_SAMPLE` mutants of each file, drawn by `MUTATE_SEED` (default 1), in the order in which they are drawn:
 * one of each file in turn. Without that variable it runs all. Stryker has no such option, but shows a reporter its plans before
 * it runs them.
 */

interface Plan {
  plan: string;
  mutant: { fileName: string; status?: string; statusReason?: string };
}

class Sample {
  onMutationTestingPlanReady({ mutantPlans }: { mutantPlans: Plan[] }): void {
    const count = Number(process.env.MUTATE_SAMPLE ?? "0");
    if (count === 0) return;
    const seed = Number(process.env.MUTATE_SEED ?? "1");
    const planned = mutantPlans.filter(({ plan }) => plan === "Run");
    const files = [...Map.groupBy(planned, ({ mutant }) => mutant.fileName).values()];
    const lists = files.map((ofFile) => dice(seed).some(ofFile, count));
    const drawn = Array.from({ length: count }, (_, n) => lists.flatMap((list) => list[n] ?? [])).flat();
    const kept = new Set(drawn);
    for (const left of planned.filter((one) => !kept.has(one))) {
      left.plan = "EarlyResult";
      Object.assign(left.mutant, { status: "Ignored", statusReason: "not drawn" });
    }
    // What was drawn comes first, so that a run that is stopped is a sample too.
    mutantPlans.splice(0, mutantPlans.length, ...drawn, ...mutantPlans.filter((one) => !kept.has(one)));
    process.stdout.write(`Runs ${drawn.length} of ${planned.length} mutants, drawn by seed ${seed}.\n`);
  }
}

export const strykerPlugins = [{ kind: "Reporter", name: "sample", injectableClass: Sample }];
