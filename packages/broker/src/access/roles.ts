/** What each role may do. One table: the guard reads it, docs/security.md is printed from it, a test walks it. */

/**
 * What a route needs: nothing (`open`), looking (`read`), pushing, popping and acking, changing what is
 * stored or configured (`write`), or what only an administrator may.
 */
export const ACCESSES = ["open", "read", "produce", "consume", "write", "admin"] as const;
export type Access = (typeof ACCESSES)[number];

export const ROLES = ["admin", "read-write", "read-only", "produce", "consume"] as const;
export type Role = (typeof ROLES)[number];

export const MAY: Readonly<Record<Role, readonly Access[]>> = {
  admin: ["open", "read", "produce", "consume", "write", "admin"],
  "read-write": ["open", "read", "produce", "consume", "write"],
  "read-only": ["open", "read"],
  produce: ["open", "produce"],
  consume: ["open", "consume"],
};

export const isRole = (text: unknown): text is Role => ROLES.some((role) => role === text);
