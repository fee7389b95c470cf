/** What the file of a secret holds now, or what is wrong with it. */
export type SecretReading = { readonly value: string } | { readonly problem: string };

/** A value that is never shown in a log, an error or a page. */
export class Secret {
  #value: string;
  #problem: string | undefined;
  readonly #read: (() => SecretReading) | undefined;

  /** `read` reads the file that it came from; none: it never changes. */
  constructor(value: string, read?: () => SecretReading) {
    this.#value = value;
    this.#read = read;
  }

  /**
   * The value as it is now. A file is read for each call, so that a rotated secret is used at once and nobody need be told.
   * Without a usable file the last value stays: it may still be valid, and `problem` says what is wrong.
   */
  reveal(): string {
    const reading = this.#read?.();
    if (reading === undefined) return this.#value;
    if ("value" in reading) this.#value = reading.value;
    this.#problem = "problem" in reading ? reading.problem : undefined;
    return this.#value;
  }

  /** What is wrong with its file since it was last revealed; never shows the value. */
  problem(): string | undefined {
    return this.#problem;
  }

  /** Whether it may change while the process runs. */
  isFromFile(): boolean {
    return this.#read !== undefined;
  }

  toJSON(): string {
    return "[redacted]";
  }
  toString(): string {
    return "[redacted]";
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[redacted]";
  }
}
