/** A real terminal, by tmux: keys go in, and what a person would see comes out. */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { commandEnv, QUEEN } from "./command.ts";
import { until } from "./moments.ts";

/** Why there is no terminal here; false: there is one. */
export const terminalMissing: string | false =
  spawnSync("tmux", ["-V"]).status === 0 ? false : "tmux is not installed";

export class Terminal {
  readonly #socket = `queen-${process.pid}-${randomBytes(4).toString("hex")}`;
  readonly #folder = mkdtempSync(join(tmpdir(), "queen-terminal-"));

  /** A shell with `queen` in its path, in a window of so many columns. */
  constructor(env: Readonly<Record<string, string>>, columns: number) {
    writeFileSync(join(this.#folder, "queen"), `#!/bin/sh\nexec '${process.execPath}' '${QUEEN}' "$@"\n`, {
      mode: 0o755,
    });
    const shell = {
      ...commandEnv(env),
      PATH: `${this.#folder}:${process.env.PATH}`,
      PS1: "> ",
      LC_ALL: "C.UTF-8",
    };
    const size = ["-x", String(columns), "-y", "40"];
    this.#tmux(["-f", "/dev/null", "-u", "new-session", "-d", ...size, "bash", "--norc", "--noprofile"], {
      ...shell,
      TERM: "xterm-256color",
    });
  }

  /** Types a line. */
  enter(line: string): void {
    this.#tmux(["send-keys", "-l", line]);
    this.#tmux(["send-keys", "Enter"]);
  }

  /** Presses a key, as in `C-c`. */
  press(key: string): void {
    this.#tmux(["send-keys", key]);
  }

  /** Empties the screen, so that what it shows from now on is new. */
  async clear(): Promise<void> {
    this.enter("clear");
    await until("the terminal is empty", () => this.screen().trim() === ">");
  }

  /** What is on the screen now. */
  screen(): string {
    return this.#tmux(["capture-pane", "-p"]);
  }

  /** Waits until the screen shows it. */
  async shows(pattern: RegExp): Promise<string> {
    let last = "";
    try {
      return await until(`the terminal shows ${pattern}`, () => {
        last = this.screen();
        return pattern.test(last) ? last : undefined;
      });
    } catch (error) {
      throw new Error(`${(error as Error).message}; it showed:\n${last}`, { cause: error });
    }
  }

  close(): void {
    spawnSync("tmux", ["-L", this.#socket, "kill-server"]);
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #tmux(args: readonly string[], env?: NodeJS.ProcessEnv): string {
    const { status, stdout, stderr } = spawnSync("tmux", ["-L", this.#socket, ...args], {
      encoding: "utf8",
      ...(env === undefined ? {} : { env }),
    });
    if (status !== 0) throw new Error(`tmux ${args[0]}: ${stderr}`);
    return stdout;
  }
}
