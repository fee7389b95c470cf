import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

/** Starts a file of this folder as a process of its own, hands it `task`, and waits for its first message. */
export async function startChild<T>(
  file: string,
  task: unknown,
  nodeOptions: readonly string[] = [],
): Promise<{ answer: T; close: () => Promise<void> }> {
  const child = fork(new URL(file, import.meta.url), [], { execArgv: [...nodeOptions] });
  child.send(task as object);
  const answer = await firstMessage<T>(child, file);
  return {
    answer,
    close: async () => {
      if (child.exitCode !== null) return;
      const gone = once(child, "exit");
      if (child.connected) child.disconnect();
      await gone;
    },
  };
}

function firstMessage<T>(child: ChildProcess, file: string): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as T));
    child.once("exit", (code) => reject(new Error(`${file} ended with ${code} before it answered`)));
    child.once("error", reject);
  });
}

/** The other end: the task that `startChild` sent. The process ends with its parent. */
export async function takeTask<T>(): Promise<T> {
  const [task] = await once(process, "message");
  return task as T;
}

export function answer(value: object): void {
  process.send?.(value);
}
