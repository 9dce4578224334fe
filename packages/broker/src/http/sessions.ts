/** The handlers of sessions: who asks and what he may do, sign in, sign out. */
import { BrokerError } from "@queen/protocol";
import type { Guard } from "../access/guard.ts";
import { type Identity, NOBODY } from "../access/identity.ts";
import type { StoredUser } from "../access/password-check.ts";
import { ACCESSES } from "../access/roles.ts";
import {
  endedSessionCookie,
  isFromPage,
  SESSION_CREDENTIAL_BYTES_MAX,
  sessionCookie,
  sessionOf,
} from "../access/session-cookie.ts";
import { json } from "./answers.ts";
import type { Answer, Request } from "./route.ts";

/** What signs users in and out. */
export interface UserSessions {
  /** Throws where name and password are not those of a user. */
  check(name: string, password: string, address: string): Promise<StoredUser>;
  start(user: StoredUser): Promise<string | undefined>;
  end(credential: string): Promise<void>;
}

export interface SessionOptions {
  readonly guard: Guard;
  /** Undefined: nobody signs in by name and password. */
  readonly users: UserSessions | undefined;
  /** Whether the broker itself speaks TLS. */
  readonly isTls: boolean;
  readonly version: string;
}

export interface SignInBody {
  readonly credential?: string | undefined;
  readonly user?: string | undefined;
  readonly password?: string | undefined;
}

export class SessionRoutes {
  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  async read(request: Request): Promise<Answer> {
    const { guard } = this.#options;
    const { authorization } = request.headers;
    const credential = typeof authorization === "string" ? authorization : sessionOf(request.headers);
    return this.#shown(guard.isOn ? await this.#identify(credential, request.address) : guard.anybody);
  }

  async signIn(request: Request, body: SignInBody): Promise<Answer> {
    const { guard, isTls } = this.#options;
    checkFromPage(request);
    if (!guard.isOn) throw new BrokerError("CONFLICT", "Nobody signs in: authentication is off.");
    const { user } = body;
    const credential = body.credential?.trim() ?? (await this.#byPassword(request, body));
    if (Buffer.byteLength(credential) > SESSION_CREDENTIAL_BYTES_MAX) {
      throw new BrokerError(
        "VALIDATION_FAILED",
        `The credential is longer than ${SESSION_CREDENTIAL_BYTES_MAX} bytes, too long for a cookie; use an API key.`,
      );
    }
    const identity = await guard.identify("read", {
      path: "",
      authorization: credential,
      address: request.address,
    });
    const isSecure = isTls || request.headers["x-forwarded-proto"] === "https";
    const answer = this.#shown(identity, { "Set-Cookie": sessionCookie(credential, isSecure) });
    return body.credential === undefined ? { ...answer, about: { user: user! } } : answer;
  }

  async #byPassword(request: Request, { user, password }: SignInBody): Promise<string> {
    const { users } = this.#options;
    if (user === undefined || password === undefined) {
      throw new BrokerError("VALIDATION_FAILED", "Send a credential, or user and password.");
    }
    if (!users) {
      throw new BrokerError(
        "CONFLICT",
        "This broker has no users: set QUEEN_API_KEYS=on, or sign in with a token.",
      );
    }
    const known = await users.check(user, password, request.address);
    const credential = await users.start(known);
    if (credential === undefined) throw new BrokerError("UNAUTHENTICATED", "Wrong user or password");
    return credential;
  }

  async signOut(request: Request): Promise<Answer> {
    checkFromPage(request);
    const session = sessionOf(request.headers);
    if (session !== undefined) await this.#options.users?.end(session);
    return { status: 204, headers: { "Set-Cookie": endedSessionCookie() } };
  }

  async #identify(authorization: string | undefined, address: string): Promise<Identity> {
    if (authorization === undefined) return NOBODY;
    try {
      return await this.#options.guard.identify("read", { path: "", authorization, address });
    } catch (error) {
      if (error instanceof BrokerError && error.code === "UNAUTHENTICATED") return NOBODY;
      throw error;
    }
  }

  #shown(identity: Identity, headers: Readonly<Record<string, string>> = {}): Answer {
    const { guard, users, version } = this.#options;
    return json(
      200,
      {
        authentication: guard.isOn,
        passwords: users !== undefined,
        name: identity.isKnown ? identity.name : null,
        roles: identity.roles,
        access: ACCESSES.filter((access) => identity.may(access)),
        queues: identity.queues ?? null,
        version,
      },
      { "Cache-Control": "no-store", ...headers },
    );
  }
}

/** Nobody is signed in or out by a page of another origin. */
function checkFromPage(request: Request): void {
  if (isFromPage(request.headers)) return;
  throw new BrokerError(
    "VALIDATION_FAILED",
    "Sessions are for the broker's own page: send the header Queen-Page: 1.",
  );
}
