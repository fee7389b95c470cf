import { CommanderError } from "commander";
import { describe, expect, test } from "vitest";
import { EtlError, PlatformError, UnreachableError, UsageError } from "../../../src/core/base/errors.ts";
import { EXIT, exitCodeOf, firstExit } from "../../../src/terminal/exit.ts";

const facts = { code: "a_code", message: "It is wrong.", next: "Correct it." };
const platform = (more: Partial<ConstructorParameters<typeof PlatformError>[0]>) =>
  new PlatformError({ ...facts, method: "GET", url: "https://x.example", ...more });

describe("firstExit", () => {
  test.each([
    [[0, 4, 3, 6, 5, 2], 2],
    [[0, 4, 3, 6, 5], 5],
    [[0, 4, 3, 6], 6],
    [[1, 4, 3, 0], 3],
    [[1, 4, 0], 4],
    [[0, 1], 1],
    [[0, 0], 0],
    [[], 0],
  ])("of %j returns %i", (exits, first) => {
    expect(firstExit(exits)).toBe(first);
  });
});

describe("exitCodeOf", () => {
  test.each([
    ["--help", new CommanderError(0, "commander.help", ""), EXIT.done],
    ["a wrong flag", new CommanderError(1, "commander.unknownOption", ""), EXIT.usage],
    ["a wrong setting", new UsageError(facts), EXIT.usage],
    ["a server out of reach", new UnreachableError(facts), EXIT.unreachable],
    ["401", platform({ status: 401 }), EXIT.refused],
    ["no response", platform({ code: "network", retryable: true }), EXIT.unreachable],
    ["a gateway's 502, to the last attempt", platform({ status: 502, retryable: true }), EXIT.unreachable],
    ["404", platform({ status: 404 }), EXIT.refused],
    ["429, to the last attempt", platform({ status: 429, retryable: true }), EXIT.unreachable],
    ["a redirect that is not followed", platform({ code: "redirect_refused", status: 302 }), EXIT.refused],
    ["a JSON-RPC error", platform({ code: "rpc_error" }), EXIT.refused],
    ["a response of another page", platform({ code: "response_invalid", status: 200 }), EXIT.unexpected],
    ["anything of ours", new EtlError(facts), EXIT.unexpected],
    ["a bug", new TypeError("x"), EXIT.unexpected],
  ])("%s", (_, error, exit) => {
    expect(exitCodeOf(error)).toBe(exit);
  });
});
