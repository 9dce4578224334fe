/**
 * TLS from files: a certificate, its key, and where clients must show a certificate too, the authority that
 * signs theirs. The files are read again when they change, so that a renewed certificate needs no restart.
 */
import { readFileSync, unwatchFile, watchFile } from "node:fs";
import { createSecureContext, type SecureContextOptions } from "node:tls";

export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
  /** Undefined: clients need no certificate. */
  readonly clientAuthority: string | undefined;
}

export interface TlsOptions extends SecureContextOptions {
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
}

// Old clients speak 1.2; nobody needs what came before.
const VERSION_MIN = "TLSv1.2";
const LOOK_EVERY_MS = 5_000;

/** Throws an Error that names the file and what to do. */
export function readTls(files: TlsFiles): TlsOptions {
  const options: TlsOptions = {
    cert: read(files.certificate, "QUEEN_TLS_CERT_FILE"),
    key: read(files.key, "QUEEN_TLS_KEY_FILE"),
    ...(files.clientAuthority === undefined
      ? {}
      : { ca: read(files.clientAuthority, "QUEEN_TLS_CLIENT_CA_FILE") }),
    minVersion: VERSION_MIN,
    requestCert: files.clientAuthority !== undefined,
    rejectUnauthorized: files.clientAuthority !== undefined,
  };
  try {
    createSecureContext(options);
  } catch (error) {
    throw new Error(
      `QUEEN_TLS_CERT_FILE and QUEEN_TLS_KEY_FILE do not fit together: ${(error as Error).message}`,
    );
  }
  return options;
}

function read(path: string, variable: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new Error(
      `${variable} names ${path}, which cannot be read: ${(error as NodeJS.ErrnoException).code}`,
    );
  }
}

/** Has the server use new files as soon as they are there. Returns what ends that. */
export function watchTls(
  files: TlsFiles,
  server: { setSecureContext(options: SecureContextOptions): void },
  told: (event: "tls.renewed" | "tls.not_renewed", error?: unknown) => void,
): () => void {
  const paths = [files.certificate, files.key, files.clientAuthority].filter((path) => path !== undefined);
  const renew = (): void => {
    try {
      server.setSecureContext(readTls(files));
      told("tls.renewed");
    } catch (error) {
      told("tls.not_renewed", error); // half of the files may be there; the other half brings us here again
    }
  };
  for (const path of paths) watchFile(path, { interval: LOOK_EVERY_MS, persistent: false }, renew);
  return () => {
    for (const path of paths) unwatchFile(path, renew);
  };
}
