import { fitsEnvFile } from "../../config/env-file.ts";
import { readSetting, refuse } from "../../config/variables.ts";
import type { Prompts } from "./prompts.ts";

export type Name = "USAGE_BASE_URL" | "USAGE_API_KEY" | "DATABASE_URL" | "REDIS_URL";
export type Answers = Partial<Record<Name, string>>;

interface Question {
  readonly text: string;
  readonly flag: string;
  /** What Enter answers where nothing is set yet. */
  readonly fallback?: string;
  readonly isHidden?: true;
  readonly isOptional?: true;
}

export const QUESTIONS: Readonly<Record<Name, Question>> = {
  USAGE_BASE_URL: {
    text: "Billing host of the platform",
    flag: "--base-url",
    fallback: "https://api.smith.langchain.com",
  },
  USAGE_API_KEY: { text: "API key with organization:read", flag: "--api-key-file", isHidden: true },
  DATABASE_URL: {
    text: "Postgres",
    flag: "--database-url",
    fallback: "postgres://usage:usage@127.0.0.1:5432/usage",
  },
  REDIS_URL: {
    text: "Redis, such as redis://127.0.0.1:6379 (empty: none)",
    flag: "--redis-url",
    isOptional: true,
  },
};

/** Asks for one answer. `kept` is the one before. */
export function askFor(name: Name, prompts: Prompts, kept: string | undefined): Promise<string> {
  const { text, fallback = "", isHidden } = QUESTIONS[name];
  return isHidden ? prompts.secret(text, kept ?? "") : prompts.text(text, kept || fallback);
}

/** Names that have no answer and need one. */
export function unanswered(answers: Answers): Name[] {
  const names = Object.keys(QUESTIONS) as Name[];
  return names.filter((name) => QUESTIONS[name].isOptional === undefined && !answers[name]);
}

/** Error: `configuration_invalid` for an answer that the setting does not take. */
export function checkAnswers(answers: Answers, names: readonly Name[]): void {
  const problems = names.flatMap((name) => {
    const value = answers[name] ?? "";
    if (value === "" && QUESTIONS[name].isOptional === undefined) return [`${name} is empty`];
    return fitsEnvFile(value) ? [] : [`${name} has a ' or a line end, which an env file cannot hold`];
  });
  refuse(problems);
  for (const name of names) readSetting({ [name]: answers[name] }, name);
}
