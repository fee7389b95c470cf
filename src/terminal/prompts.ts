import input from "@inquirer/input";
import password from "@inquirer/password";

/** Prompts go to stderr, and Ctrl-C ends them with the signal's reason. */
export interface Prompts {
  /** Enter keeps the text. A URL's password is never shown. */
  text(message: string, kept: string): Promise<string>;
  secret(message: string, kept: string): Promise<string>;
}

export function promptsFor(signal: AbortSignal): Prompts {
  const context = { output: process.stderr, signal };
  return {
    text: async (message, kept) => {
      const shown = maskPassword(kept, true);
      const transformer = (value: string, { isFinal }: { isFinal: boolean }) => maskPassword(value, isFinal);
      const response = await ended(input({ message, default: shown, transformer }, context));
      return response === shown ? kept : response.trim();
    },
    secret: async (message, kept) => {
      const requested = `${message} (not shown${kept === "" ? "" : "; Enter keeps the present one"})`;
      const response = await ended(password({ message: requested, mask: false, toggleMask: false }, context));
      return response.trim() || kept;
    },
  };

  /** A prompt reads Ctrl-C as a key, so the session gets its signal here. */
  async function ended<T>(prompt: Promise<T>): Promise<T> {
    try {
      return await prompt;
    } catch (error) {
      if (!(error instanceof Error && /^(Exit|Abort)PromptError$/.test(error.name))) throw error;
      process.emit("SIGINT");
      throw signal.reason;
    }
  }
}

/** Until `@` is typed, text after the user's name may be the password. */
function maskPassword(url: string, isWhole: boolean): string {
  const [, before = "", secret = "", after = ""] = /^([\w+]+:\/\/[^:@/]*:)(.*?)(@[^@]*)?$/.exec(url) ?? [];
  return secret === "" || (isWhole && after === "") ? url : `${before}${"*".repeat(secret.length)}${after}`;
}
