import { workMessage } from "../../src/core/pipeline/extract/work-task.ts";
import type { OpenSource } from "../../src/core/pipeline/source/source.ts";
import { planSync } from "../../src/core/pipeline/sync/sync.ts";
import { takeTasksToQueue } from "../../src/core/store/work/tasks.ts";
import type { Bench } from "./source.ts";

export async function syncByQueue(
  bench: Bench,
  opened = () => {},
  settings: Partial<OpenSource["settings"]> = {},
): Promise<void> {
  const source = await bench.open({ settings });
  opened();
  await planSync(source);
  await workAll(source);
}

export async function workAll(source: OpenSource): Promise<void> {
  const { store, sourceId } = source;
  for (;;) {
    const messages = await store.transaction(({ db }) => takeTasksToQueue(db, { sourceId, most: 1000 }));
    if (messages.length === 0) return;
    for (const message of messages)
      await workMessage({ ...source, attempts: 1 }, { ...message, isLastAttempt: true }).catch(() => {});
  }
}
