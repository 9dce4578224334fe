/**
 * The session of a browser: the credential itself, or what a user got for his password, in a cookie that no script can
 * read. So it counts on every broker and ends when the credential does. It has no path: browsers then send it to
 * what lies beside the route that set it, `…/api/v1/`, also below the base path of a proxy.
 */
type Headers = Readonly<Record<string, string | string[] | undefined>>;

const NAME = "queen_session";
export const SESSION_SECONDS_MAX = 12 * 60 * 60;
// Browsers drop cookies of more than 4,096 characters.
export const SESSION_CREDENTIAL_BYTES_MAX = 2_900;

/** A page of another origin cannot send it without being asked first, and is not allowed to. */
export const PAGE_HEADER = "queen-page";

export const isFromPage = (headers: Headers): boolean => headers[PAGE_HEADER] !== undefined;

/** `isSecure`: the browser came by TLS. */
export function sessionCookie(credential: string, isSecure: boolean): string {
  const value = Buffer.from(credential).toString("base64url");
  return `${NAME}=${value}; Max-Age=${SESSION_SECONDS_MAX}; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}`;
}

export const endedSessionCookie = (): string => `${NAME}=; Max-Age=0; HttpOnly; SameSite=Strict`;

/** The credential of the session; undefined: there is none. */
export function sessionOf(headers: Headers): string | undefined {
  const { cookie } = headers;
  if (typeof cookie !== "string") return undefined;
  for (const each of cookie.split(";")) {
    const [name, value] = each.trim().split("=", 2);
    if (name === NAME && value) return Buffer.from(value, "base64url").toString();
  }
  return undefined;
}
