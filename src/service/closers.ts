/** Closes what was started, last first. Node 22 has no `AsyncDisposableStack`. */
export interface Closers {
  defer(close: () => Promise<void> | void): void;
  /** Closes all of it, then throws the first error. A second call finds nothing to close. */
  disposeAsync(): Promise<void>;
}

export function createClosers(): Closers {
  const waiting: (() => Promise<void> | void)[] = [];
  return {
    defer: (close) => void waiting.push(close),
    disposeAsync: async () => {
      const errors: unknown[] = [];
      for (let close = waiting.pop(); close !== undefined; close = waiting.pop()) {
        try {
          await close();
        } catch (error) {
          errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
    },
  };
}
