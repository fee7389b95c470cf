import { readFileSync } from "node:fs";

/** What the file of a secret holds now, or what is wrong with it. */
type SecretReading = { readonly value: string } | { readonly problem: string };

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

/**
 * The secret in a file, which is read again whenever it is revealed. `problemsOf` says what is wrong with a content.
 * Undefined if there is none now: see `problems`.
 */
export function secretFromFile(
  file: string,
  where: string,
  problems: string[],
  problemsOf: (content: string) => readonly string[] = () => [],
): Secret | undefined {
  const read = (): SecretReading => {
    const found: string[] = [];
    const value = readSecretFile(file, where, found);
    if (value !== undefined) found.push(...problemsOf(value));
    return value !== undefined && found.length === 0 ? { value } : { problem: found.join("; ") };
  };
  const first = read();
  if ("value" in first) return new Secret(first.value, read);
  problems.push(first.problem);
  return undefined;
}

export function readSecretFile(file: string, where: string, problems: string[]): string | undefined {
  try {
    const text = readFileSync(file, "utf8").trim();
    if (text !== "") return text;
    problems.push(`${where} ${file} is empty`);
  } catch (error) {
    // Not its message, which repeats the path. Who sets the secret itself in place of its file must not find it in a log.
    const isPath = file.includes("/") && !file.includes("://");
    const { code } = error as NodeJS.ErrnoException;
    const what = isPath ? `${file} cannot be read` : "is not the path of a file that can be read";
    problems.push(`${where} ${what}: ${code}`);
  }
  return undefined;
}
