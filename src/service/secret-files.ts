import type { Secret } from "../config/secret.ts";
import type { Logger } from "../log.ts";

const LOOK_EVERY_MS = 5_000;

/** Tells of secrets whose files changed while the process runs. */
export interface SecretFiles {
  /** Calls after the secret has changed. What it does must not throw. */
  onChange(secret: Secret, listener: () => void): void;
  close(): void;
}

/**
 * Looks at the files every few seconds. Whoever uses a secret reads its file anyway; this is for the log, and for work that
 * stopped because of the secret and would not use it again for long.
 */
export function watchSecretFiles(secrets: ReadonlyMap<string, Secret>, log: Logger): SecretFiles {
  const listeners = new Map<Secret, (() => void)[]>();
  const seen = new Map(
    [...secrets.values()].map((secret) => [secret, { value: secret.reveal(), problem: "" }]),
  );
  const look = () => {
    for (const [name, secret] of secrets) {
      const before = seen.get(secret);
      const now = { value: secret.reveal(), problem: secret.problem() ?? "" };
      seen.set(secret, now);
      if (now.problem !== "" && now.problem !== before?.problem) {
        const next = "The last value stays in use. Correct the file: it is read again.";
        log.warn({ code: "secret_unreadable", secret: name, reason: now.problem }, next);
      }
      if (now.value === before?.value) continue;
      log.info({ secret: name }, "secret changed: the new one is used from now on");
      for (const listener of listeners.get(secret) ?? []) listener();
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return {
    onChange: (secret, listener) => {
      listeners.set(secret, [...(listeners.get(secret) ?? []), listener]);
    },
    close: () => clearInterval(timer),
  };
}
