/**
 * Checks a user's name and password. Guessing is slow: wrong ones are limited by name and by address, each is compared
 * with a dear hash, and no answer tells whether there is such a user, neither by its words nor by the time it took.
 * Hashes are made one after the other, and only so many wait, because the threads that make them write the spool, too.
 */
import { BrokerError } from "@queen/protocol";
import { isPassword, nobodysPassword } from "./password.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { TooManyRequests } from "./too-many-requests.ts";
import { Turns } from "./turns.ts";

export interface StoredUser {
  readonly id: number;
  /** As `password.ts` writes it. */
  readonly password: string;
  readonly expiresAtMs: number | null;
}

export interface PasswordCheckOptions {
  readonly read: (name: string) => Promise<StoredUser | undefined>;
  readonly compare?: typeof isPassword;
  /** Told of users that exist only: whoever types a password in the place of a name has it in no log. */
  readonly wrong: (name: string, address: string) => void;
  readonly now: () => number;
}

// Whoever cannot remember tries some; a program gets at a user's password 8,640 times a day with each worker.
const WRONG_OF_NAME = { perSecond: 0.1, burst: 10 };
// An office behind one address mistypes more often.
const WRONG_OF_ADDRESS = { perSecond: 1, burst: 30 };

export class PasswordCheck {
  readonly #options: PasswordCheckOptions;
  readonly #limits: readonly [byName: RateLimiter, byAddress: RateLimiter];
  readonly #nobodys = nobodysPassword();
  readonly #turns = new Turns({
    waitingMax: 16,
    message: "Too many sign in at this moment",
    pauseMs: 2_000,
  });

  constructor(options: PasswordCheckOptions) {
    this.#options = options;
    const { now } = options;
    this.#limits = [
      new RateLimiter({ ...WRONG_OF_NAME, now }),
      new RateLimiter({ ...WRONG_OF_ADDRESS, now }),
    ];
  }

  /** The user; throws where name and password are not those of one. */
  async check(name: string, password: string, address: string): Promise<StoredUser> {
    const giveBack = this.#takeAttempt(name, address);
    let isWrong = false;
    try {
      const user = await this.#turns.take(() => this.#compare(name, password, address));
      isWrong = user === undefined;
      if (user) return user;
    } finally {
      if (!isWrong) giveBack();
    }
    throw new BrokerError("UNAUTHENTICATED", "Wrong user or password");
  }

  /** Counted before it is compared: those that come at once count, too. */
  #takeAttempt(name: string, address: string): () => void {
    const [byName, byAddress] = this.#limits;
    const waitMs = Math.max(byName.waitMs(name), byAddress.waitMs(address));
    if (waitMs > 0)
      throw new TooManyRequests("Too many wrong passwords for this user or from this address", waitMs);
    byName.take(name);
    byAddress.take(address);
    return () => {
      byName.giveBack(name);
      byAddress.giveBack(address);
    };
  }

  async #compare(name: string, password: string, address: string): Promise<StoredUser | undefined> {
    const { read, wrong, compare = isPassword } = this.#options;
    const user = await read(name);
    const isRight = await compare(password, user?.password ?? this.#nobodys);
    const isExpired = user?.expiresAtMs != null && user.expiresAtMs <= Date.now();
    if (isRight && !isExpired) return user;
    if (user) wrong(name, address);
    return undefined;
  }
}
