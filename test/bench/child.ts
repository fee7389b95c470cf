import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Starts a file of this folder as a process of its own, hands it `task`, and waits for its first message. */
export async function startChild<T>(
  file: string,
  task: unknown,
  nodeOptions: readonly string[] = [],
): Promise<{ answer: T; close: () => Promise<void> }> {
  // As the command line starts: compiling all of the program anew would count as its memory.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache") };
  const child = fork(new URL(file, import.meta.url), [], { execArgv: [...nodeOptions], env });
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
