import type { Command } from "commander";
import { withRange, withSelection } from "../session/options.ts";
import { showPreview } from "../session/preview.ts";
import { inSession } from "../session/session.ts";

export function define(command: Command): void {
  withSelection(withRange(command)).action(inSession(showPreview));
}
