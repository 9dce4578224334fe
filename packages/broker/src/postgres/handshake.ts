/**
 * A handshake makes a connection that a session then speaks on: `pg` connects, encrypts and authenticates. The session
 * reads along from the first byte, so it stands at the right one when `pg` says ready, whatever came in the same chunk.
 */
import type { EventEmitter } from "node:events";
import { Socket } from "node:net";
import pg from "pg";
import { ConnectionLostError, PostgresError } from "./errors.ts";
import type { ConnectionSettings, Server, SessionOptions } from "./session.ts";

// A dead peer is noticed while no call is in flight. Network equipment forgets idle connections after
// minutes at the earliest.
const KEEP_ALIVE_AFTER_MS = 30_000;

export const serverName = ({ host, port }: Server): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;

/** Calls `readAlong` with the socket before anything is read of it; resolves with the id of the server's process. */
export function shakeHands(
  server: Server,
  settings: ConnectionSettings,
  options: SessionOptions,
  readAlong: (stream: Socket) => void,
): Promise<number> {
  const client = new pg.Client({
    host: server.host,
    port: server.port,
    database: settings.database,
    user: settings.user,
    ssl: settings.ssl,
    application_name: options.applicationName,
    connectionTimeoutMillis: options.connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_AFTER_MS,
    ...(settings.password === undefined ? {} : { password: settings.password }),
  });
  client.on("error", () => {}); // pg repeats what the session hears from the socket itself
  const connection = connectionOf(client);
  let isReadAlong = false;
  const take = (): void => {
    isReadAlong = true;
    readAlong(connection.stream);
  };
  if (settings.ssl === false) take();
  else connection.once("sslconnect", take);
  return new Promise((resolve, reject) => {
    client.connect((error: Error | null | undefined) => {
      if (error || !isReadAlong) {
        connection.stream.destroy();
        reject(error ?? new Error("pg did not hand over its socket"));
        return;
      }
      resolve((client as unknown as { processID: number }).processID);
    });
  });
}

/** What `pg` keeps to itself and the session needs: the socket, which TLS replaces by its own. */
interface PgConnection extends EventEmitter {
  readonly stream: Socket;
}

function connectionOf(client: pg.Client): PgConnection {
  const { connection } = client as unknown as { connection?: PgConnection };
  if (connection?.stream instanceof Socket) return connection;
  throw new Error("this version of pg does not show its socket");
}

/** Whatever went wrong before a session was handed out, no call of the caller's was sent. */
export function connectError(server: string, error: Error): Error {
  if (error instanceof PostgresError) return error;
  const { code, severity, detail, hint, routine } = error as pg.DatabaseError;
  if (code !== undefined && severity !== undefined)
    return new PostgresError({ sqlstate: code, severity, message: error.message, detail, hint, routine });
  return new ConnectionLostError(`cannot connect to ${server}: ${textOf(error)}`, {
    outcomeUnknown: false,
    cause: error,
  });
}

/** A host name with several addresses fails with an AggregateError that has no message of its own. */
export function textOf(error: Error | undefined): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(textOf).join(", ");
  return error?.message ?? "it was closed";
}
