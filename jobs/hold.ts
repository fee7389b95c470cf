/** A reason for which this process takes no jobs for a while. */
export interface Hold {
  isHeld(): boolean;
  /** Calls whenever it begins or ends. */
  onChange(listener: () => void): void;
}

/** A hold with the means to begin and end it. */
export function createHold({ held = false } = {}): Hold & { set(held: boolean): void } {
  const listeners: (() => void)[] = [];
  let isHeld = held;
  return {
    isHeld: () => isHeld,
    onChange: (listener) => void listeners.push(listener),
    set: (now) => {
      if (now === isHeld) return;
      isHeld = now;
      for (const listener of listeners) listener();
    },
  };
}
