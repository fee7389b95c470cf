import input from "@inquirer/input";
import password from "@inquirer/password";

/** Asks a person on a terminal. Prompts go to stderr, and Ctrl-C ends them with the signal's reason. */
export interface Prompts {
  /** Asks for a text. Enter keeps what is there. A URL's password is not shown, neither typed nor kept. */
  text(message: string, kept: string): Promise<string>;
  /** Asks for a secret, which is not shown. Enter keeps what is there. */
  secret(message: string, kept: string): Promise<string>;
}

export function promptsFor(signal: AbortSignal): Prompts {
  const context = { output: process.stderr, signal };
  return {
    text: async (message, kept) => {
      const shown = maskPassword(kept, true);
      const transformer = (value: string, { isFinal }: { isFinal: boolean }) => maskPassword(value, isFinal);
      const answer = await ended(input({ message, default: shown, transformer }, context));
      return answer === shown ? kept : answer.trim();
    },
    secret: async (message, kept) => {
      const asked = `${message} (not shown${kept === "" ? "" : "; Enter keeps the present one"})`;
      const answer = await ended(password({ message: asked, mask: false, toggleMask: false }, context));
      return answer.trim() || kept;
    },
  };

  /** A prompt reads Ctrl-C as a key, so no signal comes: the session gets one. */
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

/** While the `@` is not typed yet, whatever stands after the user's name may be a password. */
function maskPassword(url: string, isWhole: boolean): string {
  const [, before = "", secret = "", after = ""] = /^(\w+:\/\/[^:@/]*:)(.*?)(@[^@]*)?$/.exec(url) ?? [];
  return secret === "" || (isWhole && after === "") ? url : `${before}${"*".repeat(secret.length)}${after}`;
}
