/** The handlers of sessions: who asks and what he may do, sign in, sign out. */
import { BrokerError } from "@queen/protocol";
import type { Guard } from "../access/guard.ts";
import { type Identity, NOBODY } from "../access/identity.ts";
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

export interface SessionOptions {
  readonly guard: Guard;
  /** Whether the broker itself speaks TLS. */
  readonly isTls: boolean;
  readonly version: string;
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

  async signIn(request: Request, credential: string): Promise<Answer> {
    const { guard, isTls } = this.#options;
    checkFromPage(request);
    if (!guard.isOn) throw new BrokerError("CONFLICT", "Nobody signs in: authentication is off.");
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
    return this.#shown(identity, { "Set-Cookie": sessionCookie(credential.trim(), isSecure) });
  }

  signOut(request: Request): Answer {
    checkFromPage(request);
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
    const { guard, version } = this.#options;
    return json(
      200,
      {
        authentication: guard.isOn,
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
